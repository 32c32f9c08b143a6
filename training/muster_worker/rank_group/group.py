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
    PhaseReached,
    ProblemFound,
    RankEnded,
    StopBegan,
    StopCallChosen,
)
from muster_worker.contract.schema import AgentPhase, EndReason
from muster_worker.launchers.environment import NodeContext
from muster_worker.launchers.launch import StartedProcess, launch
from muster_worker.machine import processes
from muster_worker.mpi.help_boxes import select_error_lines
from muster_worker.rank_group import launcher_signals, stack_dump
from muster_worker.rank_group.exit_statuses import ExitStatuses
from muster_worker.rank_group.graceful_stop import GracefulStop
from muster_worker.rank_group.hang_watch import HangDetector
from muster_worker.rank_group.metrics import MetricReader
from muster_worker.rank_group.registry import RankRegistry
from muster_worker.rank_group.start_checks import StartChecks
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
        self, context: NodeContext, selector: selectors.BaseSelector, log: Log, world: Optional[MpiWorld] = None
    ) -> None:
        """`world` is this node's part of an MPI world. Raises `OSError` without their socket or stop file."""
        self._context = context
        self._selector = selector
        self._log = log
        self._metrics = MetricReader(context.plan.metrics)
        self._graceful_stop = GracefulStop(context.run_dir)
        self._rank_registry = RankRegistry(context, selector, log, self._metrics)
        self._hang_watch = HangDetector(context.plan.hang_seconds, log)
        self._children: Dict[int, StartedProcess] = {}  # started by the agent and not reaped
        self._streams: Dict[int, Tuple[Stream, Stream]] = {}  # output of launchers and wrappers, by pid
        self.launcher_lines: Tuple[str, ...] = ()  # the launcher's last lines; empty until it has ended
        self._exit_statuses = ExitStatuses()
        self._kill_at: Optional[float] = None  # when to send SIGKILL to all processes
        self._are_leftovers_stopped = False
        self._sigterm = launcher_signals.Sigterm()
        self._mpi_world = world
        self._base_environment: Mapping[str, str] = {}
        self._start_checks: Optional[StartChecks] = None  # before the start
        self.is_finished = False

    def launch(self, base_environment: Mapping[str, str]) -> List[Event]:
        """Start all processes as soon as node 0 is reachable. A failed start is an event, like any other end."""
        self._base_environment = base_environment
        self._start_checks = StartChecks(self._context, base_environment, self._selector, self._log)
        return self._continue_checks(self._start_checks)

    def _continue_checks(self, checks: StartChecks) -> List[Event]:
        events = checks.poll()
        if not checks.is_over:
            return events
        self._start_checks = None
        return [*events, *(self._finish() if checks.has_failed else self._start())]

    def _start(self) -> List[Event]:
        if self._mpi_world is not None:
            problem = self._mpi_world.find_problem(self._base_environment)
            if problem is not None:
                self._log.print_line(problem.message)
                return [ProblemFound(problem), *self._finish()]
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
        if failure is None:
            return []
        self._log.print_line(failure.message)
        self.launcher_lines = (failure.message,)
        return [LauncherRecord(failure.name, time.monotonic(), failure.exit_code, None, failure.reason)]

    @property
    def next_poll_in(self) -> Optional[float]:
        """Seconds until `poll` is due; None while waiting for events."""
        if self.is_finished:
            return None
        if self._start_checks is not None:
            return max(0.0, self._start_checks.next_poll_at - time.monotonic())
        if self._rank_registry.has_lost_ranks or not self._is_busy or self._is_overdue():
            return SCAN_SECONDS
        if self._mpi_world is not None and self._have_stopped_ranks_ended:
            return SCAN_SECONDS
        timeouts = [] if self._kill_at is None else [max(SCAN_SECONDS, self._kill_at - time.monotonic())]
        if self._sigterm.next_poll_in is not None:
            timeouts.append(self._sigterm.next_poll_in)
        if self._mpi_world is not None and self._mpi_world.next_poll_in is not None:
            timeouts.append(self._mpi_world.next_poll_in)
        if self._graceful_stop.next_poll_at is not None:
            timeouts.append(max(0.0, self._graceful_stop.next_poll_at - time.monotonic()))
        return min(timeouts, default=None)

    def stop(self, grace: float, *, is_graceful: bool = False, stop_call: int = 0) -> List[Event]:
        """Send SIGTERM now and SIGKILL after `grace` seconds. A second call can only shorten the grace period.

        `is_graceful` and `stop_call`, the operator's decision or 0, are described in `graceful_stop.py`.
        """
        events: List[Event] = []
        if self._kill_at is None:
            events = self._begin_stop(grace, is_graceful=is_graceful)
        else:
            self._kill_at = min(self._kill_at, time.monotonic() + grace)
            self._graceful_stop.shorten(grace if is_graceful else 0.0)
        if stop_call:
            self._decide_stop_call(stop_call)
        return events

    def _begin_stop(self, grace: float, *, is_graceful: bool) -> List[Event]:
        self._cancel_checks()
        live_links = self._rank_registry.find_live_links()
        activities = stack_dump.read_activities(live_links)
        events: List[Event] = [ActivityFound(rank, text) for rank, text in activities.items()]
        # The grace period starts after the stack dumps.
        now = time.monotonic()
        self._kill_at = now + grace
        events.append(StopBegan(now))
        files = [link.hello.progress for link in live_links.values() if link.hello is not None]
        if is_graceful and self._graceful_stop.begin(files, grace):
            # Without other nodes there is nothing to agree on.
            if self._context.plan.nodes == 1:
                self._decide_stop_call(self._graceful_stop.stop_call_number)
        else:
            self._send_sigterm()
        if is_graceful:
            events.append(StopCallChosen(self._graceful_stop.stop_call_number))
        return events

    def _decide_stop_call(self, stop_call: int) -> None:
        if self._graceful_stop.decide(stop_call):
            self._log.print_line(f"the ranks stop at call {stop_call} of muster_worker.stopping()")

    def _send_sigterm(self) -> None:
        links, descendants = self._rank_registry.find_live_links(), self._list_descendants()
        live_ranks = {rank: link.build_live_rank(descendants) for rank, link in links.items()}
        self._sigterm.send(live_ranks, self._children.values(), self._mpi_world)

    def _continue_stop(self) -> None:
        graceful_stop = self._graceful_stop
        if graceful_stop.is_overdue:
            self._log.print_line("the operator has not decided where the ranks of all nodes stop")
            self._decide_stop_call(graceful_stop.stop_call_number)
        if graceful_stop.is_sigterm_due:
            graceful_stop.sigterm_at = None
            self._send_sigterm()
        self._sigterm.poll(self._children, time.monotonic())

    def kill(self) -> List[Event]:
        """Send SIGKILL to all processes now."""
        self._cancel_checks()
        events: List[Event] = [StopBegan(time.monotonic())]
        self._kill_at = time.monotonic()
        processes.signal_processes(self._list_descendants(), signal.SIGKILL)
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
        if self._start_checks is not None:
            return self._continue_checks(self._start_checks)
        if self._mpi_world is not None:
            self._mpi_world.poll()
        self._continue_stop()
        now = time.monotonic()
        events = self._rank_registry.resolve_lost_ranks(self._exit_statuses, now)
        if self._have_stopped_ranks_ended:
            launcher_signals.hasten_end(self._children.values(), self._mpi_world)
        if self._is_overdue():
            remaining_pids = processes.signal_processes(self._list_descendants(), signal.SIGKILL)
        elif not self._is_busy:
            remaining_pids = self._list_descendants()
            # A shell has ended before the program that it ran, which has the rest of the grace period.
            is_stopping = processes.are_in_groups(remaining_pids, self._sigterm.groups)
            if remaining_pids and not self._are_leftovers_stopped and not is_stopping:
                processes.signal_processes(remaining_pids, signal.SIGTERM)
                self._are_leftovers_stopped = True
                grace_end = now + LEFTOVER_GRACE_SECONDS
                self._kill_at = grace_end if self._kill_at is None else min(self._kill_at, grace_end)
        else:
            return events
        return events if remaining_pids or self._children else events + self._finish()

    @property
    def _have_stopped_ranks_ended(self) -> bool:
        return self._kill_at is not None and self._rank_registry.have_all_ranks_ended

    @property
    def _is_busy(self) -> bool:
        """Whether a launcher or the MPI world still runs, so that no other process is a leftover."""
        if self._children or self._mpi_world is None:
            return bool(self._children)
        return self._mpi_world.may_be_idle if self._kill_at is None else self._mpi_world.is_running

    def observe(self) -> Tuple[Mapping[int, Observation], List[Event]]:
        """Return the current observations of the ranks, and their metrics and activities that have changed."""
        observations, metrics = self._rank_registry.observe()
        # `_begin_stop` has already reported the activities.
        links = self._rank_registry.find_live_links() if self._kill_at is None else {}
        return observations, [*metrics, *self._hang_watch.check(observations, links, time.monotonic())]

    def _cancel_checks(self) -> None:
        if self._start_checks is not None:
            self._start_checks.cancel()
            self._start_checks = None

    def _finish(self) -> List[Event]:
        self.is_finished = True
        # A rank that the kernel killed together with its wrapper may not be reaped yet.
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

    def _store_launcher_lines(self, process: StartedProcess) -> None:
        streams = self._streams[process.pid]
        for stream in reversed(streams):
            if not stream.is_closed:
                stream.drain()
        self.launcher_lines = select_error_lines(streams[1].tail.read_lines() or streams[0].tail.read_lines())

    def _list_descendants(self) -> Tuple[int, ...]:
        return processes.list_descendants(self._context.fork_server_pid)

    def _is_overdue(self) -> bool:
        return self._kill_at is not None and time.monotonic() >= self._kill_at

    def _read(self, stream: Stream) -> List[Event]:
        stream.read()
        if stream.is_closed:
            stream.release(self._selector)
        return []
