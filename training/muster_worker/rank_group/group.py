"""One attempt's processes on this node: started, watched, ended, and verified gone."""

from __future__ import annotations

import selectors
import signal
import time
from typing import Dict, List, Mapping, Optional, Tuple

from muster_worker.agent.log import Log
from muster_worker.agent.reports import Observation
from muster_worker.agent.state import (
    ActivityFound,
    Event,
    LauncherRecord,
    MetricRecord,
    NetworkMeasured,
    PhaseReached,
    ProblemFound,
    RankEnded,
    StopBegan,
)
from muster_worker.contract.schema import AgentPhase, AgentProblem, EndReason
from muster_worker.launchers.environment import Place
from muster_worker.launchers.launch import Launched, LaunchRefused, launch
from muster_worker.machine import processes
from muster_worker.mpi.help_boxes import telling_lines
from muster_worker.network.check_figures import sentence
from muster_worker.network.check_process import CheckProcess, start_check
from muster_worker.network.reach import Reach
from muster_worker.rank_group import stack_dump
from muster_worker.rank_group.metrics import MetricReader
from muster_worker.rank_group.reaped import Reaped
from muster_worker.rank_group.registry import RankRegistry
from muster_worker.rank_group.streams import Stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from muster_worker.mpi.node import MpiWorld  # other launchers\' agents have no use for it

LEFTOVER_GRACE_SECONDS = 2.0
"""What a launcher leaves behind (a logger that still uploads) may take so long after SIGTERM."""

SCAN_SECONDS = 0.02
"""Between two looks at what is still to be ended: whoever forks faster than this is met again."""


class RankGroup:
    """The node's share of an attempt, from its start until no process of it is left."""

    def __init__(
        self,
        place: Place,
        selector: selectors.BaseSelector,
        log: Log,
        world: Optional[MpiWorld] = None,
    ) -> None:
        """`world` is this node's part of an MPI world. Raises `OSError` when the ranks' socket can't be made."""
        self._place = place
        self._selector = selector
        self._log = log
        self._metrics = MetricReader(place.plan.metrics)
        self._rank_registry = RankRegistry(place, selector, log, self._metrics)
        self._children: Dict[int, Launched] = {}  # started by us and not reaped
        self._streams: Dict[int, Tuple[Stream, Stream]] = {}  # of launchers and wrappers themselves, by pid
        self._launcher_lines: Tuple[str, ...] = ()
        self._reaped = Reaped()
        self._kill_at: Optional[float] = None  # SIGKILL to all that is left, from then on
        self._leftovers_told = False
        self._world = world
        self._base: Mapping[str, str] = {}
        self._reach: Optional[Reach] = None  # while nothing is started
        self._check: Optional[CheckProcess] = None  # then this, where it is wanted
        self.finished = False

    def launch(self, base: Mapping[str, str]) -> List[Event]:
        """Start everything, once node 0 is reached. What can't be started is an event like any other end."""
        self._base = base
        if self._place.node == 0:
            return self._measure()
        # ranks that can't reach their rendezvous wait for it until their own time-outs, half an hour later
        own, first = self._place.peers[self._place.node], self._place.master
        self._reach = Reach(own, first, self._selector, time.monotonic())
        return self._look_for_peer(self._reach)

    def _measure(self) -> List[Event]:
        """Look at the network first where the job wants it, then start."""
        if self._place.plan.network_check:
            try:
                self._check = start_check(self._place, self._base, self._selector)
            except OSError as error:
                self._log.say(f"no network check: {error}")
        return [] if self._check is not None else self._start()

    def _start(self) -> List[Event]:
        if self._world is not None:
            problem = self._world.find_problem(self._base)
            if problem is not None:
                return self._give_up(problem)
            started, refused = self._world.start(self._base)
        else:
            started, refused = launch(self._place, self._base)
        for process in started:
            self._children[process.pid] = process
            streams = tuple(Stream(fd, process.start.name, self._log, self._metrics) for fd in process.outputs)
            self._streams[process.pid] = (streams[0], streams[1])
            for stream in streams:
                self._selector.register(
                    stream.descriptor, selectors.EVENT_READ, lambda stream=stream: self._read(stream)
                )
            if process.start.speaks_for_rank:
                self._rank_registry.let_inner_take_over(process.pid)
        return [] if refused is None else self._refuse(refused)

    @property
    def next_step_in(self) -> Optional[float]:
        """Seconds until `step` has something to do; None while only events matter."""
        if self.finished:
            return None
        if self._reach is not None:
            return max(0.0, self._reach.next_step_at - time.monotonic())
        if self._check is not None:
            return max(0.0, self._check.next_step_at - time.monotonic())
        if self._rank_registry.has_lost or not self._is_busy or (self._kill_at is not None and self._is_overdue()):
            return SCAN_SECONDS
        waits = [] if self._kill_at is None else [max(SCAN_SECONDS, self._kill_at - time.monotonic())]
        if self._world is not None and self._world.next_step_in is not None:
            waits.append(self._world.next_step_in)
        return min(waits, default=None)

    def stop(self, grace: float) -> List[Event]:
        """SIGTERM now, SIGKILL to all that is left after `grace` seconds. A second call can only shorten the time."""
        if self._kill_at is not None:
            self._kill_at = min(self._kill_at, time.monotonic() + grace)
            return []
        self._look_no_more()
        events: List[Event] = [
            ActivityFound(rank, text) for rank, text in stack_dump.activities(self._rank_registry.live()).items()
        ]
        # from here on: what asking took is not the ranks' time
        now = time.monotonic()
        self._kill_at = now + grace
        events.append(StopBegan(now))
        live = [link.pid for link in self._rank_registry.live().values() if link.pid is not None]
        if self._world is not None and live:
            # mpirun and its daemons would give them a second at most; they end when their ranks have
            processes.signal_all(live, signal.SIGTERM)
            return events
        if self._world is not None:
            self._world.terminate()
        for process in self._children.values():
            # torchrun passes the signal on to its ranks; everybody else's are in the group of who we started
            if process.start.passes_signals:
                processes.signal_all((process.pid,), signal.SIGTERM)
            else:
                processes.signal_session(process.pid, signal.SIGTERM)
        return events

    def kill(self) -> List[Event]:
        """SIGKILL to everything at once."""
        self._look_no_more()
        events: List[Event] = [StopBegan(time.monotonic())]
        self._kill_at = time.monotonic()
        processes.signal_all(processes.descendants(), signal.SIGKILL)
        return events

    def on_reaped(self, ended: List[processes.Ended]) -> List[Event]:
        """Children and adopted orphans that are gone."""
        now = time.monotonic()
        events: List[Event] = []
        for end in ended:
            process = self._children.pop(end.pid, None)
            if process is None and self._world is not None and self._world.on_reaped(end):
                continue
            self._reaped.add(end)
            if process is None:
                continue
            # what its ranks have said is older than its own end
            events += self._rank_registry.catch_up()
            code, number = (None, end.signal) if end.signal else (end.exit_code, None)
            if process.start.rank is None:
                self._remember_lines(process)
                events.append(LauncherRecord(process.start.name, now, code, number))
            elif self._rank_registry.holder(process.start.rank) is None:
                events.append(RankEnded(process.start.rank, now, code, number, EndReason.WRAPPER_LOST))
        return events + self._rank_registry.resolve_lost(self._reaped, now)

    def step(self) -> List[Event]:
        """What is due now: the end of a grace period, leftovers to end, the last process gone."""
        if self.finished:
            return []
        if self._reach is not None:
            return self._look_for_peer(self._reach)
        if self._check is not None:
            return self._look_at_network(self._check)
        if self._world is not None:
            self._world.step()
        now = time.monotonic()
        events = self._rank_registry.resolve_lost(self._reaped, now)
        if self._is_overdue():
            left = processes.signal_all(processes.descendants(), signal.SIGKILL)
        elif not self._is_busy:
            left = processes.descendants()
            if left and not self._leftovers_told:
                processes.signal_all(left, signal.SIGTERM)
                self._leftovers_told = True
                grace_end = now + LEFTOVER_GRACE_SECONDS
                self._kill_at = grace_end if self._kill_at is None else min(self._kill_at, grace_end)
        else:
            return events
        return events if left or self._children else events + self._finish()

    @property
    def _is_busy(self) -> bool:
        """Whether something goes on that has its own end, so that nothing is a leftover yet."""
        if self._children or self._world is None:
            return bool(self._children)
        return self._world.lasts if self._kill_at is None else self._world.is_running

    def observe(self) -> Tuple[Mapping[int, Observation], List[MetricRecord]]:
        """What is to be read of the ranks at this moment."""
        return self._rank_registry.observe()

    @property
    def launcher_lines(self) -> Tuple[str, ...]:
        """The launcher's own last lines; empty until it ended."""
        return self._launcher_lines

    def _look_for_peer(self, reach: Reach) -> List[Event]:
        reach.step(time.monotonic())
        if reach.reached:
            self._reach = None
            return self._measure()
        if reach.problem is not None:
            self._reach = None
            return self._give_up(reach.problem)
        return []

    def _give_up(self, problem: AgentProblem) -> List[Event]:
        self._log.say(problem.message)
        return [ProblemFound(problem), *self._finish()]

    def _look_at_network(self, check: CheckProcess) -> List[Event]:
        check.step(time.monotonic())
        if check.figures is None:
            return []
        self._check = None
        self._log.say(sentence(check.figures))
        # whatever it found: a job that runs slowly is worth more to its owner than none
        return [NetworkMeasured(check.figures), *self._start()]

    def _look_no_more(self) -> None:
        if self._check is not None:
            self._check.close()
            self._check = None
        if self._reach is not None:
            self._reach.close()
            self._reach = None

    def _finish(self) -> List[Event]:
        self.finished = True
        # a killed wrapper's rank dies with it: it may be dead, and not counted as living, before its end was heard of
        for end in processes.reap():
            self._reaped.add(end)
        if self._world is not None:
            self._world.close()
        events = self._rank_registry.close() + self._rank_registry.give_up_lost(self._reaped)
        for streams in self._streams.values():
            for stream in streams:
                if not stream.closed:
                    stream.drain()
                    stream.release(self._selector)
        return [*events, PhaseReached(AgentPhase.ENDED)]

    def _refuse(self, refused: LaunchRefused) -> List[Event]:
        self._log.say(refused.message)
        self._launcher_lines = (refused.message,)
        return [LauncherRecord(refused.name, time.monotonic(), refused.exit_code, None, refused.reason)]

    def _remember_lines(self, process: Launched) -> None:
        streams = self._streams[process.pid]
        for stream in reversed(streams):
            if not stream.closed:
                stream.drain()
        self._launcher_lines = telling_lines(streams[1].tail.lines() or streams[0].tail.lines())

    def _is_overdue(self) -> bool:
        return self._kill_at is not None and time.monotonic() >= self._kill_at

    def _read(self, stream: Stream) -> List[Event]:
        stream.read()
        if stream.closed:
            stream.release(self._selector)
        return []
