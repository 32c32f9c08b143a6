"""The processes of one attempt on this node: starts, watches and stops them."""

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
from muster_worker.mpi.help_boxes import error_lines
from muster_worker.network.check_process import CheckProcess, start_check
from muster_worker.network.check_results import format_figures
from muster_worker.network.reachability import ReachabilityCheck
from muster_worker.rank_group import stack_dump
from muster_worker.rank_group.metrics import MetricReader
from muster_worker.rank_group.reaped import Reaped
from muster_worker.rank_group.registry import RankRegistry
from muster_worker.rank_group.streams import Stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from muster_worker.mpi.node import MpiWorld  # only the mpi launcher needs it

LEFTOVER_GRACE_SECONDS = 2.0
"""Grace period for processes that outlive the launcher, such as a logger that still uploads."""

SCAN_SECONDS = 0.02
"""Interval between two scans for remaining processes, so that a process that forks repeatedly is killed in the end."""


class RankGroup:
    """The processes of an attempt on this node, from their start until all have ended."""

    def __init__(
        self,
        place: Place,
        selector: selectors.BaseSelector,
        log: Log,
        world: Optional[MpiWorld] = None,
    ) -> None:
        """`world` is this node's part of an MPI world. Raises `OSError` if the ranks' socket can't be created."""
        self._place = place
        self._selector = selector
        self._log = log
        self._metrics = MetricReader(place.plan.metrics)
        self._rank_registry = RankRegistry(place, selector, log, self._metrics)
        self._children: Dict[int, Launched] = {}  # started by the agent and not reaped
        self._streams: Dict[int, Tuple[Stream, Stream]] = {}  # output of launchers and wrappers, by pid
        self._launcher_lines: Tuple[str, ...] = ()
        self._reaped = Reaped()
        self._kill_at: Optional[float] = None  # when to send SIGKILL to all processes
        self._are_leftovers_stopped = False
        self._world = world
        self._base: Mapping[str, str] = {}
        self._reach: Optional[ReachabilityCheck] = None  # before the start: is node 0 reachable?
        self._check: Optional[CheckProcess] = None  # after that: the network check, if enabled
        self.finished = False

    def launch(self, base: Mapping[str, str]) -> List[Event]:
        """Start all processes as soon as node 0 is reachable. A failed start is an event like any other end."""
        self._base = base
        if self._place.node == 0:
            return self._start_network_check()
        # Ranks that can't reach the rendezvous would wait for their own time-out of half an hour.
        own, first = self._place.peers[self._place.node], self._place.master
        self._reach = ReachabilityCheck(own, first, self._selector, time.monotonic())
        return self._check_peer(self._reach)

    def _start_network_check(self) -> List[Event]:
        """Run the network check if the job enables it, then start."""
        if self._place.plan.network_check:
            try:
                self._check = start_check(self._place, self._base, self._selector)
            except OSError as error:
                self._log.print_line(f"no network check: {error}")
        return [] if self._check is not None else self._start()

    def _start(self) -> List[Event]:
        if self._world is not None:
            problem = self._world.find_problem(self._base)
            if problem is not None:
                return self._fail(problem)
            started, refusal = self._world.start(self._base)
        else:
            started, refusal = launch(self._place, self._base)
        for process in started:
            self._children[process.pid] = process
            streams = tuple(Stream(fd, process.start.name, self._log, self._metrics) for fd in process.outputs)
            self._streams[process.pid] = (streams[0], streams[1])
            for stream in streams:
                self._selector.register(
                    stream.descriptor, selectors.EVENT_READ, lambda stream=stream: self._read(stream)
                )
            if process.start.represents_rank:
                self._rank_registry.set_outer_wrapper(process.pid)
        return [] if refusal is None else self._report_refusal(refusal)

    @property
    def next_step_in(self) -> Optional[float]:
        """Seconds until `step` is due; None while waiting for events."""
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
        """Send SIGTERM now and SIGKILL after `grace` seconds. A second call can only shorten the grace period."""
        if self._kill_at is not None:
            self._kill_at = min(self._kill_at, time.monotonic() + grace)
            return []
        self._cancel_checks()
        events: List[Event] = [
            ActivityFound(rank, text) for rank, text in stack_dump.read_activities(self._rank_registry.live()).items()
        ]
        # The grace period starts after the stack dumps.
        now = time.monotonic()
        self._kill_at = now + grace
        events.append(StopBegan(now))
        live = [link.pid for link in self._rank_registry.live().values() if link.pid is not None]
        if self._world is not None and live:
            # Signal only the ranks: mpirun and its daemons would kill them after a second. They exit after their ranks.
            processes.signal_all(live, signal.SIGTERM)
            return events
        if self._world is not None:
            self._world.terminate()
        for process in self._children.values():
            # torchrun forwards the signal to its ranks. The ranks of other launchers are in the launcher's process
            # group.
            if process.start.forwards_signals:
                processes.signal_all((process.pid,), signal.SIGTERM)
            else:
                processes.signal_session(process.pid, signal.SIGTERM)
        return events

    def kill(self) -> List[Event]:
        """Send SIGKILL to all processes now."""
        self._cancel_checks()
        events: List[Event] = [StopBegan(time.monotonic())]
        self._kill_at = time.monotonic()
        processes.signal_all(processes.descendants(), signal.SIGKILL)
        return events

    def on_reaped(self, ended: List[processes.Ended]) -> List[Event]:
        """Handle children and adopted orphans that have ended."""
        now = time.monotonic()
        events: List[Event] = []
        for end in ended:
            process = self._children.pop(end.pid, None)
            if process is None and self._world is not None and self._world.on_reaped(end):
                continue
            self._reaped.add(end)
            if process is None:
                continue
            # Read the messages of its ranks first: they are older than this end.
            events += self._rank_registry.receive_pending()
            code, number = (None, end.signal) if end.signal else (end.exit_code, None)
            if process.start.rank is None:
                self._store_launcher_lines(process)
                events.append(LauncherRecord(process.start.name, now, code, number))
            elif self._rank_registry.find_link(process.start.rank) is None:
                events.append(RankEnded(process.start.rank, now, code, number, EndReason.WRAPPER_LOST))
        return events + self._rank_registry.resolve_lost(self._reaped, now)

    def step(self) -> List[Event]:
        """Do what is due: kill after the grace period, stop leftovers, detect the end of the last process."""
        if self.finished:
            return []
        if self._reach is not None:
            return self._check_peer(self._reach)
        if self._check is not None:
            return self._check_network(self._check)
        if self._world is not None:
            self._world.step()
        now = time.monotonic()
        events = self._rank_registry.resolve_lost(self._reaped, now)
        if self._is_overdue():
            remaining = processes.signal_all(processes.descendants(), signal.SIGKILL)
        elif not self._is_busy:
            remaining = processes.descendants()
            if remaining and not self._are_leftovers_stopped:
                processes.signal_all(remaining, signal.SIGTERM)
                self._are_leftovers_stopped = True
                grace_end = now + LEFTOVER_GRACE_SECONDS
                self._kill_at = grace_end if self._kill_at is None else min(self._kill_at, grace_end)
        else:
            return events
        return events if remaining or self._children else events + self._finish()

    @property
    def _is_busy(self) -> bool:
        """Whether a launcher or the MPI world still runs, so that no other process is a leftover."""
        if self._children or self._world is None:
            return bool(self._children)
        return self._world.may_be_idle if self._kill_at is None else self._world.is_running

    def observe(self) -> Tuple[Mapping[int, Observation], List[MetricRecord]]:
        """The current observations and metrics of the ranks."""
        return self._rank_registry.observe()

    @property
    def launcher_lines(self) -> Tuple[str, ...]:
        """The launcher's last lines; empty until it has ended."""
        return self._launcher_lines

    def _check_peer(self, reach: ReachabilityCheck) -> List[Event]:
        reach.step(time.monotonic())
        if reach.reached:
            self._reach = None
            return self._start_network_check()
        if reach.problem is not None:
            self._reach = None
            return self._fail(reach.problem)
        return []

    def _fail(self, problem: AgentProblem) -> List[Event]:
        self._log.print_line(problem.message)
        return [ProblemFound(problem), *self._finish()]

    def _check_network(self, check: CheckProcess) -> List[Event]:
        check.step(time.monotonic())
        if check.figures is None:
            return []
        self._check = None
        self._log.print_line(format_figures(check.figures))
        # Start whatever the result: a slow job is better than none.
        return [NetworkMeasured(check.figures), *self._start()]

    def _cancel_checks(self) -> None:
        if self._check is not None:
            self._check.close()
            self._check = None
        if self._reach is not None:
            self._reach.close()
            self._reach = None

    def _finish(self) -> List[Event]:
        self.finished = True
        # The kernel kills a rank together with its wrapper, and the scan may miss it: reap it here.
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

    def _report_refusal(self, refusal: LaunchRefused) -> List[Event]:
        self._log.print_line(refusal.message)
        self._launcher_lines = (refusal.message,)
        return [LauncherRecord(refusal.name, time.monotonic(), refusal.exit_code, None, refusal.reason)]

    def _store_launcher_lines(self, process: Launched) -> None:
        streams = self._streams[process.pid]
        for stream in reversed(streams):
            if not stream.closed:
                stream.drain()
        self._launcher_lines = error_lines(streams[1].tail.lines() or streams[0].tail.lines())

    def _is_overdue(self) -> bool:
        return self._kill_at is not None and time.monotonic() >= self._kill_at

    def _read(self, stream: Stream) -> List[Event]:
        stream.read()
        if stream.closed:
            stream.release(self._selector)
        return []
