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
from muster_worker.launchers.environment import NodeContext
from muster_worker.launchers.launch import LaunchFailure, StartedProcess, launch
from muster_worker.machine import processes
from muster_worker.mpi.help_boxes import select_error_lines
from muster_worker.network.check_process import CheckProcess, start_check
from muster_worker.network.check_results import format_figures
from muster_worker.network.reachability import ReachabilityCheck
from muster_worker.rank_group import stack_dump
from muster_worker.rank_group.exit_statuses import ExitStatuses
from muster_worker.rank_group.metrics import MetricReader
from muster_worker.rank_group.registry import RankRegistry
from muster_worker.rank_group.streams import Stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from muster_worker.mpi.node import MpiWorld  # only the mpi launcher needs it

LEFTOVER_GRACE_SECONDS = 2.0
"""Grace period for processes that outlive the launcher, such as a logger that uploads its data."""

SCAN_SECONDS = 0.02
"""Interval between two scans for remaining processes, so that a process that forks repeatedly is killed in the end."""


class RankGroup:
    """The processes of an attempt on this node, from their start until all have ended."""

    def __init__(
        self,
        context: NodeContext,
        selector: selectors.BaseSelector,
        log: Log,
        world: Optional[MpiWorld] = None,
    ) -> None:
        """`world` is this node's part of an MPI world. Raises `OSError` if the ranks' socket can't be created."""
        self._context = context
        self._selector = selector
        self._log = log
        self._metrics = MetricReader(context.plan.metrics)
        self._rank_registry = RankRegistry(context, selector, log, self._metrics)
        self._children: Dict[int, StartedProcess] = {}  # started by the agent and not reaped
        self._streams: Dict[int, Tuple[Stream, Stream]] = {}  # output of launchers and wrappers, by pid
        self._launcher_lines: Tuple[str, ...] = ()
        self._exit_statuses = ExitStatuses()
        self._kill_at: Optional[float] = None  # when to send SIGKILL to all processes
        self._are_leftovers_stopped = False
        self._mpi_world = world
        self._base_environment: Mapping[str, str] = {}
        self._reachability_check: Optional[ReachabilityCheck] = None  # before the start, on other nodes than 0
        self._network_check: Optional[CheckProcess] = None  # after that, if the job enables it
        self.is_finished = False

    def launch(self, base: Mapping[str, str]) -> List[Event]:
        """Start all processes as soon as node 0 is reachable. A failed start is an event, as another end is."""
        self._base_environment = base
        if self._context.node == 0:
            return self._start_network_check()
        # Ranks that can't reach the rendezvous would wait until their own timeout of half an hour.
        own, first = self._context.peers[self._context.node], self._context.master
        self._reachability_check = ReachabilityCheck(own, first, self._selector, time.monotonic())
        return self._check_peer(self._reachability_check)

    def _start_network_check(self) -> List[Event]:
        """Run the network check if the job enables it, then start."""
        if self._context.plan.network_check:
            try:
                self._network_check = start_check(self._context, self._base_environment, self._selector)
            except OSError as error:
                self._log.print_line(f"no network check: {error}")
        return [] if self._network_check is not None else self._start()

    def _start(self) -> List[Event]:
        if self._mpi_world is not None:
            problem = self._mpi_world.find_problem(self._base_environment)
            if problem is not None:
                return self._fail(problem)
            started, failure = self._mpi_world.start(self._base_environment)
        else:
            started, failure = launch(self._context, self._base_environment)
        for process in started:
            self._children[process.pid] = process
            streams = tuple(Stream(fd, process.spec.name, self._log, self._metrics) for fd in process.outputs)
            self._streams[process.pid] = (streams[0], streams[1])
            for stream in streams:
                self._selector.register(
                    stream.descriptor, selectors.EVENT_READ, lambda stream=stream: self._read(stream)
                )
            if process.spec.represents_rank:
                self._rank_registry.set_outer_wrapper(process.pid)
        return [] if failure is None else self._report_launch_failure(failure)

    @property
    def next_poll_in(self) -> Optional[float]:
        """Seconds until `poll` is due; None while waiting for events."""
        if self.is_finished:
            return None
        if self._reachability_check is not None:
            return max(0.0, self._reachability_check.next_poll_at - time.monotonic())
        if self._network_check is not None:
            return max(0.0, self._network_check.next_poll_at - time.monotonic())
        if (
            self._rank_registry.has_lost_ranks
            or not self._is_busy
            or (self._kill_at is not None and self._is_overdue())
        ):
            return SCAN_SECONDS
        waits = [] if self._kill_at is None else [max(SCAN_SECONDS, self._kill_at - time.monotonic())]
        if self._mpi_world is not None and self._mpi_world.next_poll_in is not None:
            waits.append(self._mpi_world.next_poll_in)
        return min(waits, default=None)

    def stop(self, grace: float) -> List[Event]:
        """Send SIGTERM now and SIGKILL after `grace` seconds. A second call can only shorten the grace period."""
        if self._kill_at is not None:
            self._kill_at = min(self._kill_at, time.monotonic() + grace)
            return []
        self._cancel_checks()
        events: List[Event] = [
            ActivityFound(rank, text)
            for rank, text in stack_dump.read_activities(self._rank_registry.live_links()).items()
        ]
        # The grace period starts after the stack dumps.
        now = time.monotonic()
        self._kill_at = now + grace
        events.append(StopBegan(now))
        live_pids = [link.pid for link in self._rank_registry.live_links().values() if link.pid is not None]
        if self._mpi_world is not None and live_pids:
            # Signal only the ranks. On SIGTERM mpirun and its daemons would kill the ranks after a second; without it,
            # they exit after their ranks.
            processes.signal_all(live_pids, signal.SIGTERM)
            return events
        if self._mpi_world is not None:
            self._mpi_world.terminate()
        for process in self._children.values():
            # torchrun forwards the signal to its ranks. Ranks of other launchers are in the launcher's process group.
            if process.spec.forwards_signals:
                processes.signal_all((process.pid,), signal.SIGTERM)
            else:
                processes.signal_session(process.pid, signal.SIGTERM)
        return events

    def kill(self) -> List[Event]:
        """Send SIGKILL to all processes now."""
        self._cancel_checks()
        events: List[Event] = [StopBegan(time.monotonic())]
        self._kill_at = time.monotonic()
        processes.signal_all(processes.list_descendants(self._context.fork_server_pid), signal.SIGKILL)
        return events

    def on_reaped(self, exits: List[processes.ProcessExit]) -> List[Event]:
        """Handle children and adopted orphans that have ended."""
        now = time.monotonic()
        events: List[Event] = []
        for end in exits:
            process = self._children.pop(end.pid, None)
            if process is None and self._mpi_world is not None and self._mpi_world.on_reaped(end):
                continue
            self._exit_statuses.add(end)
            if process is None:
                continue
            # Read the messages of the process' ranks first: they are older than its end.
            events += self._rank_registry.receive_pending()
            code, number = (None, end.signal) if end.signal else (end.exit_code, None)
            if process.spec.rank is None:
                self._store_launcher_lines(process)
                events.append(LauncherRecord(process.spec.name, now, code, number))
            elif self._rank_registry.find_link(process.spec.rank) is None:
                events.append(RankEnded(process.spec.rank, now, code, number, EndReason.WRAPPER_LOST))
        return events + self._rank_registry.resolve_lost_ranks(self._exit_statuses, now)

    def poll(self) -> List[Event]:
        """Kill after the grace period, stop leftover processes, and detect the end of the last process."""
        if self.is_finished:
            return []
        if self._reachability_check is not None:
            return self._check_peer(self._reachability_check)
        if self._network_check is not None:
            return self._check_network(self._network_check)
        if self._mpi_world is not None:
            self._mpi_world.poll()
        now = time.monotonic()
        events = self._rank_registry.resolve_lost_ranks(self._exit_statuses, now)
        if self._is_overdue():
            remaining = processes.signal_all(processes.list_descendants(self._context.fork_server_pid), signal.SIGKILL)
        elif not self._is_busy:
            remaining = processes.list_descendants(self._context.fork_server_pid)
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
        if self._children or self._mpi_world is None:
            return bool(self._children)
        return self._mpi_world.may_be_idle if self._kill_at is None else self._mpi_world.is_running

    def observe(self) -> Tuple[Mapping[int, Observation], List[MetricRecord]]:
        """Return the current observations and metrics of the ranks."""
        return self._rank_registry.observe()

    @property
    def launcher_lines(self) -> Tuple[str, ...]:
        """The launcher's last lines; empty until it has ended."""
        return self._launcher_lines

    def _check_peer(self, check: ReachabilityCheck) -> List[Event]:
        check.poll(time.monotonic())
        if check.is_reachable:
            self._reachability_check = None
            return self._start_network_check()
        if check.problem is not None:
            self._reachability_check = None
            return self._fail(check.problem)
        return []

    def _fail(self, problem: AgentProblem) -> List[Event]:
        self._log.print_line(problem.message)
        return [ProblemFound(problem), *self._finish()]

    def _check_network(self, check: CheckProcess) -> List[Event]:
        check.poll(time.monotonic())
        if check.figures is None:
            return []
        self._network_check = None
        self._log.print_line(format_figures(check.figures))
        # Start with any result: a slow job is better than none.
        return [NetworkMeasured(check.figures), *self._start()]

    def _cancel_checks(self) -> None:
        if self._network_check is not None:
            self._network_check.close()
            self._network_check = None
        if self._reachability_check is not None:
            self._reachability_check.close()
            self._reachability_check = None

    def _finish(self) -> List[Event]:
        self.is_finished = True
        # The kernel kills a rank together with its wrapper, and the scan may miss it: reap it here.
        for end in processes.reap():
            self._exit_statuses.add(end)
        if self._mpi_world is not None:
            self._mpi_world.close()
        events = self._rank_registry.close() + self._rank_registry.give_up_lost_ranks(self._exit_statuses)
        for streams in self._streams.values():
            for stream in streams:
                if not stream.is_closed:
                    stream.drain()
                    stream.release(self._selector)
        return [*events, PhaseReached(AgentPhase.ENDED)]

    def _report_launch_failure(self, failure: LaunchFailure) -> List[Event]:
        self._log.print_line(failure.message)
        self._launcher_lines = (failure.message,)
        return [LauncherRecord(failure.name, time.monotonic(), failure.exit_code, None, failure.reason)]

    def _store_launcher_lines(self, process: StartedProcess) -> None:
        streams = self._streams[process.pid]
        for stream in reversed(streams):
            if not stream.is_closed:
                stream.drain()
        self._launcher_lines = select_error_lines(streams[1].tail.lines() or streams[0].tail.lines())

    def _is_overdue(self) -> bool:
        return self._kill_at is not None and time.monotonic() >= self._kill_at

    def _read(self, stream: Stream) -> List[Event]:
        stream.read()
        if stream.is_closed:
            stream.release(self._selector)
        return []
