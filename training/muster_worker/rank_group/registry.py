"""Which process is which rank: what wrappers and hooks tell, turned into events of the ranks that they speak for."""

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
from muster_worker.rank_group import progress, stack_dump
from muster_worker.rank_group.link import Hello, Message, Refused, Started
from muster_worker.rank_group.metrics import MetricReader
from muster_worker.rank_group.rank_links import RankLink, listen, most_links
from muster_worker.rank_group.reaped import Reaped
from muster_worker.rank_group.streams import Stream

LOST_SECONDS = 0.5
"""So long after a lost wrapper's rank is gone its end may come; then nobody will ever know how it ended."""

EXIT_CODES = {
    EndReason.COMMAND_NOT_FOUND: NOT_FOUND,
    EndReason.COMMAND_NOT_EXECUTABLE: NOT_EXECUTABLE,
    EndReason.WORLD_SIZE_MISMATCH: MISMATCH_EXIT_CODE,
}
"""How a wrapper ends that refused its command."""

Handler = Callable[[], List[Event]]
"""What the node's loop calls when a descriptor is readable: every selector key's data."""


class RankRegistry:
    """The links of one attempt, and who of them holds which rank."""

    def __init__(self, place: Place, selector: selectors.BaseSelector, log: Log, metrics: MetricReader) -> None:
        """Listen on the place's socket. Raises `OSError`."""
        first = place.node * place.plan.procs_per_node
        self._place = place
        self._expected = range(first, first + place.plan.procs_per_node)
        self._selector = selector
        self._log = log
        self._metrics = metrics
        self._links: List[RankLink] = []
        self._most_links = most_links()
        self._holders: Dict[int, RankLink] = {}
        self._outer: Optional[int] = None  # the wrapper around a node's command
        self._listener = listen(place.socket)
        selector.register(self._listener, selectors.EVENT_READ, self._accept)

    def holder(self, rank: int) -> Optional[RankLink]:
        """Who speaks for a rank; None until somebody does."""
        return self._holders.get(rank)

    def let_inner_take_over(self, pid: int) -> None:
        """Process `pid` is the wrapper around a node's command: it speaks for the rank until one inside does."""
        self._outer = pid

    def live(self) -> Dict[int, RankLink]:
        """The ranks that were started and haven't ended."""
        return {
            rank: link
            for rank, link in self._holders.items()
            if link.pid is not None and not link.over and link.lost_at is None
        }

    def catch_up(self) -> List[Event]:
        """Handle all that has come already, now: a wrapper's end may overtake its words."""
        events = self._accept()
        for link in list(self._links):
            if not link.receiver.closed:
                events += self._hear(link)
        return events

    def resolve_lost(self, reaped: Reaped, now: float) -> List[Event]:
        """The ends of ranks whose wrapper was killed: an orphan is reaped by the agent itself."""
        events: List[Event] = []
        for rank, link, lost_at in self._lost():
            events += self._end_as_reaped(rank, link, lost_at, reaped)
            if link.over or now < lost_at + LOST_SECONDS:
                continue
            if processes.exists(link.process):
                # the kernel takes its time to let go of a large one; or it was not killed with its wrapper
                link.lost_at = now
            else:
                events += self._end(link, RankEnded(rank, lost_at, reason=EndReason.WRAPPER_LOST))
        return events

    def give_up_lost(self, reaped: Reaped) -> List[Event]:
        """The same once no process lives: what nobody has seen by now nobody will."""
        events: List[Event] = []
        for rank, link, lost_at in self._lost():
            events += self._end_as_reaped(rank, link, lost_at, reaped)
            if not link.over:
                events += self._end(link, RankEnded(rank, lost_at, reason=EndReason.WRAPPER_LOST))
        return events

    @property
    def has_lost(self) -> bool:
        """Whether `resolve_lost` has something to find out."""
        return bool(self._lost())

    def observe(self) -> Tuple[Dict[int, Observation], List[MetricRecord]]:
        """What is to be read of each rank at this moment."""
        visited: Dict[int, Observation] = {}
        reported: List[MetricRecord] = []
        for rank, link in self._holders.items():
            reading = progress.read(link.hello.progress) if link.hello is not None else progress.Progress()
            if reading.report_full and not link.told_full:
                link.told_full = True
                self._log.say(
                    f"rank {rank} reports more than fits: a muster_worker.report was left out, because all names and"
                    f" values together passed {MAX_REPORT_BYTES} bytes; report fewer metrics, or shorter names"
                )
            at = reading.reported_at
            if at is not None:
                reported += [MetricRecord(name, value, rank, at) for name, value in reading.metrics.items()]
            alive = link.pid is not None and not link.over and link.lost_at is None
            if alive and link.pid is not None:
                link.command_line = _command_line(link.pid) or link.command_line
            visited[rank] = Observation(
                last_lines=() if alive else link.last_lines,
                step=reading.step,
                stepped_at=reading.stepped_at,
                no_step_reason=progress.no_step_reason(reading, link.command_line or self._place.plan.command),
                rss_bytes=processes.memory(link.pid) if alive and link.pid is not None else link.peak_bytes,
            )
        return visited, reported

    def close(self) -> List[Event]:
        """Read all that is left and let go of everything; for when no process of the attempt lives any more."""
        events = self.catch_up()
        self._selector.unregister(self._listener)
        self._listener.close()
        os.unlink(self._place.socket)
        for link in list(self._links):
            self._forget(link)
            for stream in link.streams:
                if not stream.closed:
                    events += self._metric_events(link, stream.drain())
                    stream.release(self._selector)
        return events

    def _accept(self) -> List[Event]:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:  # nobody waits any more, or we ran out of descriptors: the wrapper runs on without us
                return []
            if sum(not link.receiver.closed for link in self._links) >= self._most_links:
                connection.close()
                continue
            link = RankLink(connection)
            self._links.append(link)
            self._selector.register(connection, selectors.EVENT_READ, lambda link=link: self._hear(link))

    def _hear(self, link: RankLink) -> List[Event]:
        events: List[Event] = []
        try:
            for message in link.receive(self._log, self._metrics):
                events += self._understand(link, message)
        except wire.Malformed as error:
            self._log.say(f"a process sent something that isn't a rank's word: {error}")
            link.receiver.closed = True
        if link.receiver.closed:
            if not link.over:
                link.lost_at = time.monotonic()
            self._forget(link)
        return events

    def _understand(self, link: RankLink, message: Message) -> List[Event]:
        if isinstance(message, Hello):
            return self._claim(link, message)
        if link.hello is None or self._holders.get(link.hello.rank) is not link:
            return []
        rank = link.hello.rank
        if isinstance(message, Started):
            return [RankStarted(rank, message.pid, message.at)]
        if isinstance(message, Refused):
            return self._end(link, RankEnded(rank, message.at, EXIT_CODES.get(message.reason), None, message.reason))
        return self._end(link, RankEnded(rank, message.at, message.exit_code, message.signal))

    def _claim(self, link: RankLink, hello: Hello) -> List[Event]:
        # the path is a process' word: it must not make the agent open whatever it likes
        if os.path.dirname(hello.progress) != self._place.run:
            raise wire.Malformed("hello.progress: not in the run folder")
        for stream in link.streams:
            self._selector.register(
                stream.descriptor, selectors.EVENT_READ, lambda stream=stream: self._read(link, stream)
            )
        problem = self._mismatch(hello)
        if problem is not None:
            return [ProblemFound(problem)]
        holder = self._holders.get(hello.rank)
        if holder is None:
            self._holders[hello.rank] = link
        elif holder.hello is not None and holder.hello.pid == self._outer:
            holder.rename("command")
            self._holders[hello.rank] = link
        return []

    def _mismatch(self, hello: Hello) -> Optional[AgentProblem]:
        plan = self._place.plan
        why = find_launcher(plan.launcher).mismatch(self._place, hello.rank, hello.world, hello.local_world)
        if why is not None:
            return AgentProblem(EndReason.WORLD_SIZE_MISMATCH, why)
        # a launcher of the user's own that starts fewer ranks than asked would train, and lie about how much
        if hello.world not in (0, plan.world_size):
            return AgentProblem(EndReason.WORLD_SIZE_MISMATCH, f"a process is rank {hello.rank} of {hello.world}")
        if hello.rank not in self._expected:
            first, last = self._expected[0], self._expected[-1]
            own = f"only rank {first}" if first == last else f"ranks {first} to {last}"
            return AgentProblem(
                EndReason.WORLD_SIZE_MISMATCH, f"a process says that it is rank {hello.rank}; the node has {own}"
            )
        return None

    def _lost(self) -> List[Tuple[int, RankLink, float]]:
        return [
            (rank, link, link.lost_at)
            for rank, link in self._holders.items()
            if link.lost_at is not None and not link.over
        ]

    def _end_as_reaped(self, rank: int, link: RankLink, lost_at: float, reaped: Reaped) -> List[Event]:
        end = reaped.get(link.process)
        if end is None:
            return []
        # killed before its command was under way: the wrapper's end is all that there was
        reason = EndReason.WRAPPER_LOST if link.pid is None else None
        code, number = (None, end.signal) if end.signal else (end.exit_code, None)
        return self._end(link, RankEnded(rank, lost_at, code, number, reason))

    def _end(self, link: RankLink, end: RankEnded) -> List[Event]:
        link.over = True
        events: List[Event] = []
        for stream in link.streams:
            if not stream.closed:
                events += self._metric_events(link, stream.drain())
        activity = stack_dump.activity_in(link.error_text) if end.exit_code else None
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

    def _forget(self, link: RankLink) -> None:
        if link.receiver.socket.fileno() != -1:
            self._selector.unregister(link.receiver.socket)
            link.receiver.close()
        if link.hello is None and link in self._links:  # whoever that was, there may be more of them than memory
            self._links.remove(link)


def _command_line(pid: int) -> Tuple[str, ...]:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return tuple(os.fsdecode(file.read(4096)).split("\0")[:-1])
    except OSError:
        return ()
