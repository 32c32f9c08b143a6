"""Maps processes to ranks: turns messages of wrappers and hooks into events of their ranks."""

from __future__ import annotations

import os
import selectors
import time
from typing import Callable, Dict, List, Mapping, Optional, Tuple

from muster_worker.agent.log import Log
from muster_worker.agent.reports import Observation
from muster_worker.agent.state import ActivityFound, Event, MetricRecord, ProblemFound, RankEnded, RankStarted
from muster_worker.contract import wire
from muster_worker.contract.schema import AgentProblem, EndReason
from muster_worker.launchers.environment import Place
from muster_worker.launchers.registry import find_launcher
from muster_worker.machine import processes
from muster_worker.rank.child import NOT_EXECUTABLE, NOT_FOUND
from muster_worker.rank.progress_file import MAX_REPORT_BYTES
from muster_worker.rank.wrapper import MISMATCH_EXIT_CODE
from muster_worker.rank_group import progress
from muster_worker.rank_group.activity import describe_error_text
from muster_worker.rank_group.link import Hello, Message, Refused, Started
from muster_worker.rank_group.metrics import MetricReader
from muster_worker.rank_group.rank_links import RankLink, listen, max_links
from muster_worker.rank_group.reaped import Reaped
from muster_worker.rank_group.streams import Stream

LOST_SECONDS = 0.5
"""How long to wait for the exit status of a rank whose wrapper was killed; after that, report it as unknown."""

EXIT_CODES = {
    EndReason.COMMAND_NOT_FOUND: NOT_FOUND,
    EndReason.COMMAND_NOT_EXECUTABLE: NOT_EXECUTABLE,
    EndReason.WORLD_SIZE_MISMATCH: MISMATCH_EXIT_CODE,
}
"""The exit code of a wrapper that refused its command."""

Handler = Callable[[], List[Event]]
"""The data of each selector key: the node's loop calls it when the descriptor is readable."""


class RankRegistry:
    """The links of one attempt, and the link of each rank."""

    def __init__(self, place: Place, selector: selectors.BaseSelector, log: Log, metrics: MetricReader) -> None:
        """Listen on the place's socket. Raises `OSError`."""
        first = place.node * place.plan.procs_per_node
        self._place = place
        self._expected = range(first, first + place.plan.procs_per_node)
        self._selector = selector
        self._log = log
        self._metrics = metrics
        self._links: List[RankLink] = []
        self._max_links = max_links()
        self._links_by_rank: Dict[int, RankLink] = {}
        self._outer_wrapper: Optional[int] = None  # pid of the wrapper around a node's command
        self._listener = listen(place.socket)
        selector.register(self._listener, selectors.EVENT_READ, self._accept)

    def find_link(self, rank: int) -> Optional[RankLink]:
        """The link of a rank; None before its hello."""
        return self._links_by_rank.get(rank)

    def set_outer_wrapper(self, pid: int) -> None:
        """Make process `pid`, the wrapper of a node's command, the rank's link until a child of it is."""
        self._outer_wrapper = pid

    def live(self) -> Dict[int, RankLink]:
        """The links of ranks that run."""
        return {
            rank: link
            for rank, link in self._links_by_rank.items()
            if link.pid is not None and not link.over and link.lost_at is None
        }

    def receive_pending(self) -> List[Event]:
        """Handle all messages that have already arrived: a wrapper's exit may be detected before its messages."""
        events = self._accept()
        for link in list(self._links):
            if not link.receiver.closed:
                events += self._receive(link)
        return events

    def resolve_lost(self, reaped: Reaped, now: float) -> List[Event]:
        """The ends of ranks whose wrapper was killed; the agent itself has reaped them as orphans."""
        events: List[Event] = []
        for rank, link, lost_at in self._lost_links():
            events += self._end_as_reaped(rank, link, lost_at, reaped)
            if link.over or now < lost_at + LOST_SECONDS:
                continue
            if processes.exists(link.process):
                # It may have survived its wrapper, or the kernel still frees its memory: wait longer.
                link.lost_at = now
            else:
                events += self._end(link, RankEnded(rank, lost_at, reason=EndReason.WRAPPER_LOST))
        return events

    def give_up_lost(self, reaped: Reaped) -> List[Event]:
        """The ends of such ranks when no process runs any more: no later exit status is possible."""
        events: List[Event] = []
        for rank, link, lost_at in self._lost_links():
            events += self._end_as_reaped(rank, link, lost_at, reaped)
            if not link.over:
                events += self._end(link, RankEnded(rank, lost_at, reason=EndReason.WRAPPER_LOST))
        return events

    @property
    def has_lost(self) -> bool:
        """Whether there is a rank for `resolve_lost`."""
        return bool(self._lost_links())

    def observe(self) -> Tuple[Dict[int, Observation], List[MetricRecord]]:
        """The current observations and metrics of all ranks."""
        observations: Dict[int, Observation] = {}
        reported: List[MetricRecord] = []
        for rank, link in self._links_by_rank.items():
            reading = progress.read(link.hello.progress) if link.hello is not None else progress.Progress()
            if reading.report_full and not link.is_full_logged:
                link.is_full_logged = True
                self._log.print_line(
                    f"rank {rank} reports too much: a muster_worker.report was dropped, because all names and"
                    f" values together exceed {MAX_REPORT_BYTES} bytes; report fewer metrics, or shorter names"
                )
            at = reading.reported_at
            if at is not None:
                reported += [MetricRecord(name, value, rank, at) for name, value in reading.metrics.items()]
            alive = link.pid is not None and not link.over and link.lost_at is None
            if alive and link.pid is not None:
                link.command_line = _command_line(link.pid) or link.command_line
            observations[rank] = Observation(
                last_lines=() if alive else link.last_lines,
                step=reading.step,
                stepped_at=reading.stepped_at,
                no_step_reason=progress.no_step_reason(reading, link.command_line or self._place.plan.command),
                rss_bytes=processes.memory(link.pid) if alive and link.pid is not None else link.peak_bytes,
            )
        return observations, reported

    def close(self) -> List[Event]:
        """Read all remaining messages and output and close everything, when no process of the attempt runs."""
        events = self.receive_pending()
        self._selector.unregister(self._listener)
        self._listener.close()
        os.unlink(self._place.socket)
        for link in list(self._links):
            self._drop_link(link)
            for stream in link.streams:
                if not stream.closed:
                    events += self._metric_events(link, stream.drain())
                    stream.release(self._selector)
        return events

    def _accept(self) -> List[Event]:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:  # no connection is waiting, or no descriptor is free; the wrapper runs without a link then
                return []
            if sum(not link.receiver.closed for link in self._links) >= self._max_links:
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
        except wire.Malformed as error:
            self._log.print_line(f"a process sent an invalid message: {error}")
            link.receiver.closed = True
        if link.receiver.closed:
            if not link.over:
                link.lost_at = time.monotonic()
            self._drop_link(link)
        return events

    def _handle(self, link: RankLink, message: Message) -> List[Event]:
        if isinstance(message, Hello):
            return self._claim(link, message)
        if link.hello is None or self._links_by_rank.get(link.hello.rank) is not link:
            return []
        rank = link.hello.rank
        if isinstance(message, Started):
            return [RankStarted(rank, message.pid, message.at)]
        if isinstance(message, Refused):
            return self._end(link, RankEnded(rank, message.at, EXIT_CODES.get(message.reason), None, message.reason))
        return self._end(link, RankEnded(rank, message.at, message.exit_code, message.signal))

    def _claim(self, link: RankLink, hello: Hello) -> List[Event]:
        # A process chose this path: the agent opens files in its run folder only.
        if os.path.dirname(hello.progress) != self._place.run:
            raise wire.Malformed("hello.progress: not in the run folder")
        for stream in link.streams:
            self._selector.register(
                stream.descriptor, selectors.EVENT_READ, lambda stream=stream: self._read(link, stream)
            )
        problem = self._mismatch(hello)
        if problem is not None:
            return [ProblemFound(problem)]
        current = self._links_by_rank.get(hello.rank)
        if current is None:
            self._links_by_rank[hello.rank] = link
        elif current.hello is not None and current.hello.pid == self._outer_wrapper:
            current.rename("command")
            self._links_by_rank[hello.rank] = link
        return []

    def _mismatch(self, hello: Hello) -> Optional[AgentProblem]:
        plan = self._place.plan
        why = find_launcher(plan.launcher).mismatch(self._place, hello.rank, hello.world, hello.local_world)
        if why is not None:
            return AgentProblem(EndReason.WORLD_SIZE_MISMATCH, why)
        # With fewer ranks than the job requests, a user's own launcher would train less than reported.
        if hello.world not in (0, plan.world_size):
            return AgentProblem(EndReason.WORLD_SIZE_MISMATCH, f"a process is rank {hello.rank} of {hello.world}")
        if hello.rank not in self._expected:
            first, last = self._expected[0], self._expected[-1]
            own = f"only rank {first}" if first == last else f"ranks {first} to {last}"
            return AgentProblem(
                EndReason.WORLD_SIZE_MISMATCH, f"a process reports to be rank {hello.rank}; the node has {own}"
            )
        return None

    def _lost_links(self) -> List[Tuple[int, RankLink, float]]:
        return [
            (rank, link, link.lost_at)
            for rank, link in self._links_by_rank.items()
            if link.lost_at is not None and not link.over
        ]

    def _end_as_reaped(self, rank: int, link: RankLink, lost_at: float, reaped: Reaped) -> List[Event]:
        end = reaped.get(link.process)
        if end is None:
            return []
        # Killed before its command started: this is the wrapper's own exit status.
        reason = EndReason.WRAPPER_LOST if link.pid is None else None
        code, number = (None, end.signal) if end.signal else (end.exit_code, None)
        return self._end(link, RankEnded(rank, lost_at, code, number, reason))

    def _end(self, link: RankLink, end: RankEnded) -> List[Event]:
        link.over = True
        events: List[Event] = []
        for stream in link.streams:
            if not stream.closed:
                events += self._metric_events(link, stream.drain())
        activity = describe_error_text(link.error_text) if end.exit_code else None
        if activity is not None:
            events.append(ActivityFound(end.rank, activity))
        return [*events, end]

    def _read(self, link: RankLink, stream: Stream) -> List[Event]:
        events = self._metric_events(link, stream.read())
        if stream.closed:
            stream.release(self._selector)
        return events

    def _metric_events(self, link: RankLink, values: Mapping[str, float]) -> List[Event]:
        rank = link.hello.rank if link.hello is not None else -1
        now = time.monotonic()
        return [MetricRecord(name, value, rank, now) for name, value in values.items()]

    def _drop_link(self, link: RankLink) -> None:
        if link.receiver.socket.fileno() != -1:
            self._selector.unregister(link.receiver.socket)
            link.receiver.close()
        if link.hello is None and link in self._links:  # without a hello the link is of no use
            self._links.remove(link)


def _command_line(pid: int) -> Tuple[str, ...]:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return tuple(os.fsdecode(file.read(4096)).split("\0")[:-1])
    except OSError:
        return ()
