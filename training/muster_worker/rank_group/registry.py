"""Maps processes to ranks: turns messages of wrappers and hooks into events of their ranks."""

from __future__ import annotations

import os
import selectors
import time
from typing import Callable, Dict, List, Optional, Tuple

from muster_worker.agent.log import Log
from muster_worker.agent.reports import Observation
from muster_worker.agent.state import (
    ActivityFound,
    ErrorSeen,
    Event,
    MetricRecord,
    ProblemFound,
    RankEnded,
    RankStarted,
)
from muster_worker.contract import wire
from muster_worker.contract.schema import AgentProblem, EndReason
from muster_worker.launchers.environment import NodeContext
from muster_worker.launchers.registry import find_launcher
from muster_worker.machine import processes
from muster_worker.rank.child import NOT_EXECUTABLE, NOT_FOUND
from muster_worker.rank.progress_file import MAX_REPORT_BYTES
from muster_worker.rank.wrapper import MISMATCH_EXIT_CODE
from muster_worker.rank_group import progress
from muster_worker.rank_group.activity import describe_error_text
from muster_worker.rank_group.exit_statuses import ExitStatuses
from muster_worker.rank_group.link import HelloMessage, Message, RefusedMessage, StartedMessage
from muster_worker.rank_group.metrics import MetricReader
from muster_worker.rank_group.rank_links import RankLink, compute_max_links, listen
from muster_worker.rank_group.streams import Stream

LOST_SECONDS = 0.5
"""Time limit for the exit status of a rank whose wrapper was killed. Later the agent reports an unknown status."""

EXIT_CODES = {
    EndReason.COMMAND_NOT_FOUND: NOT_FOUND,
    EndReason.COMMAND_NOT_EXECUTABLE: NOT_EXECUTABLE,
    EndReason.WORLD_SIZE_MISMATCH: MISMATCH_EXIT_CODE,
}
"""The exit codes of a wrapper that refuses its command."""

Handler = Callable[[], List[Event]]
"""The data of each selector key. The node's event loop calls it when the descriptor is ready."""


class RankRegistry:
    """The links of one attempt, and the link of each rank."""

    def __init__(self, context: NodeContext, selector: selectors.BaseSelector, log: Log, metrics: MetricReader) -> None:
        """Listen on the node's socket. Raises `OSError`."""
        first_rank = context.node * context.plan.procs_per_node
        self._context = context
        self._own_ranks = range(first_rank, first_rank + context.plan.procs_per_node)
        self._selector = selector
        self._log = log
        self._metrics = metrics
        self._links: List[RankLink] = []
        self._max_links = compute_max_links()
        self._links_by_rank: Dict[int, RankLink] = {}
        self._outer_wrapper: Optional[int] = None  # pid of the wrapper around a node's command
        self._listener = listen(context.socket_path)
        selector.register(self._listener, selectors.EVENT_READ, self._accept)

    def find_link(self, rank: int) -> Optional[RankLink]:
        """Return the link of a rank; None before its hello."""
        return self._links_by_rank.get(rank)

    def set_outer_wrapper(self, pid: int) -> None:
        """Set the pid of the wrapper of a node's command. It is the rank until one of its children is the rank."""
        self._outer_wrapper = pid

    def find_live_links(self) -> Dict[int, RankLink]:
        """Return the links of ranks that run."""
        links = self._links_by_rank.items()
        return {rank: link for rank, link in links if link.pid and not link.is_finished and link.lost_at is None}

    def receive_pending(self) -> List[Event]:
        """Handle all messages that have arrived: the agent may detect a wrapper's exit before it reads its messages."""
        events = self._accept()
        for link in list(self._links):
            if not link.receiver.is_closed:
                events += self._receive(link)
        return events

    def resolve_lost_ranks(self, exit_statuses: ExitStatuses, now: float) -> List[Event]:
        """Return the ends of ranks whose wrapper was killed. The agent itself has reaped these ranks as orphans."""
        events: List[Event] = []
        for rank, link, lost_at in self._find_lost_links():
            events += self._end_with_exit_status(rank, link, lost_at, exit_statuses)
            if link.is_finished or now < lost_at + LOST_SECONDS:
                continue
            if processes.process_exists(link.current_pid):
                # The process may have survived its wrapper, or the kernel frees its memory: wait longer.
                link.lost_at = now
            else:
                events += self._end_rank(link, RankEnded(rank, lost_at, reason=EndReason.WRAPPER_LOST))
        return events

    def give_up_lost_ranks(self, exit_statuses: ExitStatuses) -> List[Event]:
        """Return the ends of all ranks whose wrapper was killed, with an unknown status if necessary.

        Call this when no process runs any more.
        """
        events: List[Event] = []
        for rank, link, lost_at in self._find_lost_links():
            events += self._end_with_exit_status(rank, link, lost_at, exit_statuses)
            if not link.is_finished:
                events += self._end_rank(link, RankEnded(rank, lost_at, reason=EndReason.WRAPPER_LOST))
        return events

    @property
    def have_all_ranks_ended(self) -> bool:
        """Whether every rank of this node has started and ended."""
        links = [self._links_by_rank.get(rank) for rank in self._own_ranks]
        return all(link is not None and link.is_finished for link in links)

    @property
    def has_lost_ranks(self) -> bool:
        """Whether `resolve_lost_ranks` has to be called again."""
        return bool(self._find_lost_links())

    def observe(self) -> Tuple[Dict[int, Observation], List[Event]]:
        """Return the current observations of all ranks, and their metrics and errors."""
        observations: Dict[int, Observation] = {}
        events: List[Event] = []
        for rank, link in self._links_by_rank.items():
            rank_progress = progress.read(link.hello.progress) if link.hello is not None else progress.Progress()
            if rank_progress.is_report_full and not link.has_logged_dropped_report:
                link.has_logged_dropped_report = True
                self._log.print_line(
                    f"rank {rank} reports too much: a muster_worker.report was dropped, because all names and"
                    f" values together exceed {MAX_REPORT_BYTES} bytes; report fewer metrics, or shorter names"
                )
            if (at := rank_progress.reported_at) is not None:
                events += [MetricRecord(name, value, rank, at) for name, value in rank_progress.metrics.items()]
            if rank_progress.error is not None:
                events.append(ErrorSeen(rank, rank_progress.error))
            link.speed = progress.add_speed_sample(link.speed, rank_progress)
            if (pid := link.running_pid) is not None:
                link.command_line = processes.read_command_line(pid) or link.command_line
            observations[rank] = Observation(
                last_lines=link.last_lines if pid is None else (),
                step=rank_progress.step,
                stepped_at=rank_progress.stepped_at,
                phase=None if pid is None else rank_progress.find_phase(time.monotonic()),
                phase_ended_at=rank_progress.phase_ended_at,
                first_stepped_at=rank_progress.first_stepped_at,
                first_script_step=None if rank_progress.reported_step is None else rank_progress.first_reported_step,
                no_step_reason=progress.find_no_step_reason(
                    rank_progress, link.command_line or self._context.plan.command
                ),
                busy_seconds=None if pid is None else rank_progress.busy_seconds,
                total_steps=rank_progress.total_steps,
                mean_steps_per_second=None if pid is None else link.speed.steps_per_second,
                rss_bytes=link.peak_bytes if pid is None else processes.read_resident_bytes(pid),
            )
        return observations, events

    def close(self) -> List[Event]:
        """Read all remaining messages and output, and close all files, when no process of the attempt runs."""
        events = self.receive_pending()
        self._selector.unregister(self._listener)
        self._listener.close()
        os.unlink(self._context.socket_path)
        for link in list(self._links):
            self._drop_link(link)
            for stream in link.streams:
                if not stream.is_closed:
                    events += link.build_output_events(stream.drain())
                    stream.release(self._selector)
        return events

    def _accept(self) -> List[Event]:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:  # no connection is waiting, or no descriptor is free: then the wrapper runs without a link
                return []
            if sum(not link.receiver.is_closed for link in self._links) >= self._max_links:
                connection.close()
                continue
            link = RankLink(connection)
            self._links.append(link)
            self._selector.register(connection, selectors.EVENT_READ, lambda link=link: self._receive(link))

    def _receive(self, link: RankLink) -> List[Event]:
        events: List[Event] = []
        try:
            for message in link.receive(self._log, self._metrics):
                events += self._handle(link, message)
        except wire.MalformedDocument as error:
            self._log.print_line(f"a process sent an invalid message: {error}")
            link.receiver.is_closed = True
        if link.receiver.is_closed:
            if not link.is_finished:
                link.lost_at = time.monotonic()
            self._drop_link(link)
        return events

    def _handle(self, link: RankLink, message: Message) -> List[Event]:
        if isinstance(message, HelloMessage):
            return self._claim(link, message)
        if link.hello is None or self._links_by_rank.get(link.hello.rank) is not link:
            return []
        rank = link.hello.rank
        if isinstance(message, StartedMessage):
            if message.not_forked is not None:
                self._log.print_line(f"rank {rank} starts without the fork server: {message.not_forked}")
            return [RankStarted(rank, message.pid, message.at)]
        if isinstance(message, RefusedMessage):
            return self._end_rank(
                link, RankEnded(rank, message.at, EXIT_CODES.get(message.reason), None, message.reason)
            )
        return self._end_rank(link, RankEnded(rank, message.at, message.exit_code, message.signal))

    def _claim(self, link: RankLink, hello: HelloMessage) -> List[Event]:
        # A user's process may have chosen this path. The agent only opens files in its run folder.
        if os.path.dirname(hello.progress) != self._context.run_dir:
            raise wire.MalformedDocument("hello.progress: not in the run folder")
        for stream in link.streams:
            self._selector.register(
                stream.descriptor, selectors.EVENT_READ, lambda stream=stream: self._read(link, stream)
            )
        problem = self._find_mismatch(hello)
        if problem is not None:
            return [ProblemFound(problem)]
        current_link = self._links_by_rank.get(hello.rank)
        if current_link is None:
            self._links_by_rank[hello.rank] = link
        elif current_link.hello is not None and current_link.hello.pid == self._outer_wrapper:
            current_link.set_prefix("command")
            self._links_by_rank[hello.rank] = link
        return []

    def _find_mismatch(self, hello: HelloMessage) -> Optional[AgentProblem]:
        plan = self._context.plan
        reason = find_launcher(plan.launcher).describe_mismatch(
            self._context, hello.rank, hello.world, hello.local_world
        )
        if reason is not None:
            return AgentProblem(EndReason.WORLD_SIZE_MISMATCH, reason)
        # If a user's own launcher starts fewer ranks than the job requests, the job must not succeed.
        if hello.world not in (0, plan.world_size):
            return AgentProblem(EndReason.WORLD_SIZE_MISMATCH, f"a process is rank {hello.rank} of {hello.world}")
        if hello.rank not in self._own_ranks:
            first_rank, last_rank = self._own_ranks[0], self._own_ranks[-1]
            own_ranks = f"only rank {first_rank}" if first_rank == last_rank else f"ranks {first_rank} to {last_rank}"
            return AgentProblem(
                EndReason.WORLD_SIZE_MISMATCH, f"a process reports to be rank {hello.rank}; the node has {own_ranks}"
            )
        return None

    def _find_lost_links(self) -> List[Tuple[int, RankLink, float]]:
        return [
            (rank, link, link.lost_at)
            for rank, link in self._links_by_rank.items()
            if link.lost_at is not None and not link.is_finished
        ]

    def _end_with_exit_status(
        self, rank: int, link: RankLink, lost_at: float, exit_statuses: ExitStatuses
    ) -> List[Event]:
        end = exit_statuses.get(link.current_pid)
        if end is None:
            return []
        # Without a pid the command has not started: this is the exit status of the wrapper itself.
        reason = EndReason.WRAPPER_LOST if link.pid is None else None
        code, number = (None, end.signal) if end.signal else (end.exit_code, None)
        return self._end_rank(link, RankEnded(rank, lost_at, code, number, reason))

    def _end_rank(self, link: RankLink, end: RankEnded) -> List[Event]:
        link.is_finished = True
        events: List[Event] = []
        for stream in link.streams:
            if not stream.is_closed:
                events += link.build_output_events(stream.drain())
        activity = describe_error_text(link.error_text) if end.exit_code else None
        if activity is not None:
            events.append(ActivityFound(end.rank, activity))
        return [*events, end]

    def _read(self, link: RankLink, stream: Stream) -> List[Event]:
        metrics = stream.read()
        if stream.is_closed:
            stream.release(self._selector)
        return link.build_output_events(metrics)

    def _drop_link(self, link: RankLink) -> None:
        if link.receiver.socket.fileno() != -1:
            self._selector.unregister(link.receiver.socket)
            link.receiver.close()
        if link.hello is None and link in self._links:  # without a hello the link belongs to no rank
            self._links.remove(link)
