"""The agent of one node. One thread owns all state; signals, sockets, pipes and collector messages are its events."""

from __future__ import annotations

import os
import selectors
import signal
import time
from dataclasses import replace
from typing import List, Mapping, Optional, Tuple

from muster_worker.agent import termination
from muster_worker.agent.edited_source import change_source_folder, describe_problem
from muster_worker.agent.exchange import CollectorUnreachable, Inbox, NodeCutOff, ReportAcknowledged, Reporter
from muster_worker.agent.exit_code import compute_exit_code, have_ranks_succeeded
from muster_worker.agent.log import Log
from muster_worker.agent.node_options import NodeOptions
from muster_worker.agent.outage import Outage
from muster_worker.agent.peers import find_node_rank, set_peers
from muster_worker.agent.report_delay import compute_report_delay
from muster_worker.agent.reports import Observation, Snapshot, make_report
from muster_worker.agent.state import (
    AgentTerminated,
    Event,
    NodeState,
    PhaseReached,
    ProblemFound,
    apply_event,
    begin_attempt,
)
from muster_worker.contract.schema import FENCED, AgentPhase, AgentProblem, Command, CommandKind, Order
from muster_worker.machine import processes
from muster_worker.network.port import hold_another_port
from muster_worker.rank_group import memory_limit
from muster_worker.rank_group.registry import Handler
from muster_worker.rank_group.synced_group import RankGroupResources, SyncedRankGroup, create_rank_group
from muster_worker.rank_group.trainer_server import TrainerEndpoint
from muster_worker.sagemaker import opt_ml

FIRST_HEARTBEAT_SECONDS = 1.0
"""Heartbeat interval until the collector sets one."""

ORPHAN_GRACE_SECONDS = 2.0
"""Grace period for ranks when the agent's parent has exited: their results are no longer needed."""

FENCE_GRACE_SECONDS = 8.0
"""Grace period of ranks that have to stop because the node is cut off: below the operator's 15 s."""

LAST_REPORT_SECONDS = 3.0
"""Time limit for the last report before the agent exits."""

UNREACHABLE_SECONDS = 60.0
"""After its ranks have ended, the agent exits if the collector is unreachable for this time."""


class NodeAgent:
    """The agent's event loop: `run` handles events in one thread until the agent may exit."""

    def __init__(self, options: NodeOptions, state: NodeState, reporter: Reporter, inbox: Inbox, log: Log) -> None:
        self._options = options
        self._context = options.context
        self._state = state
        self._reporter = reporter
        self._inbox = inbox
        self._log = log
        self._selector = selectors.DefaultSelector()
        self._trainer_endpoint = TrainerEndpoint(self._selector, log)
        self._environment: Mapping[str, str] = dict(os.environ)
        self._rank_group: Optional[SyncedRankGroup] = None
        self._order: Optional[Order] = None  # order of the last executed command
        self._heartbeat = FIRST_HEARTBEAT_SECONDS
        self._next_report_at = 0.0
        self._acknowledged: Tuple[int, str] = (-1, "")
        self._outage = Outage(time.monotonic())
        self._oom_detector = memory_limit.OomKillDetector(memory_limit.find_counter(), time.monotonic())
        self._observations: Mapping[int, Observation] = {}  # from the last report
        self._is_exiting = False  # exit as soon as nothing runs
        self._ended_at: Optional[float] = None  # when the last process ended
        self._is_orphaned = False  # the parent has exited: no need to deliver a report
        self._signal_count = 0
        self._parent = os.getppid()
        self._wake_reader, self._wake_writer = os.pipe()

    def run(self) -> int:
        """Handle events until the agent may exit. Returns its exit code."""
        self._register_events()
        while not self._may_exit():
            events: List[Event] = []
            for key, _ in self._selector.select(self._compute_timeout()):
                handler: Handler = key.data
                events += handler()
            if self._rank_group is not None:
                events += self._rank_group.poll()
            self._trainer_endpoint.poll()
            self._apply_events(events)
        return self._finish()

    def _register_events(self) -> None:
        for descriptor in (self._wake_reader, self._wake_writer):
            os.set_blocking(descriptor, False)
        signal.set_wakeup_fd(self._wake_writer, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: None)  # the wake-up descriptor delivers the number
        self._selector.register(self._wake_reader, selectors.EVENT_READ, self._on_signals)
        self._selector.register(self._inbox.descriptor, selectors.EVENT_READ, self._on_messages)
        if self._options.lifeline is not None:
            self._selector.register(self._options.lifeline, selectors.EVENT_READ, self._on_lifeline)

    def _compute_timeout(self) -> float:
        timeouts = [self._next_report_at - time.monotonic()]
        if self._rank_group is not None and self._rank_group.next_poll_in is not None:
            timeouts.append(self._rank_group.next_poll_in)
        if self._trainer_endpoint.next_poll_at is not None:
            timeouts.append(self._trainer_endpoint.next_poll_at - time.monotonic())
        if self._is_exiting and self._ended_at is not None:
            timeouts.append(self._ended_at + LAST_REPORT_SECONDS - time.monotonic())
        return max(0.0, min(timeouts))

    def _apply_events(self, events: List[Event]) -> None:
        before = self._state
        for event in self._oom_detector.add_oom_reasons(events, time.monotonic(), self._get_rank_memory):
            self._state = apply_event(self._state, event)
        has_ended = self._state.phase == AgentPhase.ENDED != before.phase
        if has_ended and have_ranks_succeeded(self._state):
            self._options.pings.record_success(self._state.attempt)
        if has_ended and self._options.port_socket and not self._is_exiting:
            # Remaining processes of this attempt on other nodes must not connect to the next attempt.
            port_socket = hold_another_port(self._options.port_socket)
            self._options = replace(self._options, port_socket=port_socket)
            self._state = replace(self._state, port=port_socket.getsockname()[1])
        due_at = time.monotonic() + compute_report_delay(before, self._state)
        self._next_report_at = min(self._next_report_at, due_at)
        if time.monotonic() >= self._next_report_at:
            self._publish()

    def _get_rank_memory(self, rank: int) -> int:
        observation = self._observations.get(rank)
        return 0 if observation is None else observation.rss_bytes or 0

    def _publish(self) -> None:
        self._oom_detector.update(time.monotonic())
        self._reporter.submit(self._take_snapshot())
        self._next_report_at = time.monotonic() + self._heartbeat

    def _take_snapshot(self) -> Snapshot:
        lines: Tuple[str, ...] = ()
        if self._rank_group is not None:
            self._observations, events = self._rank_group.observe()
            lines = self._rank_group.launcher_lines
            for event in events:
                self._state = apply_event(self._state, event)
        return Snapshot(self._state, self._observations, lines, self._log.dropped_lines)

    def _on_signals(self) -> List[Event]:
        try:
            numbers = set(os.read(self._wake_reader, 4096))
        except BlockingIOError:
            return []
        events: List[Event] = []
        if signal.SIGCHLD in numbers:
            exits = processes.reap()
            if self._rank_group is not None:
                events += self._rank_group.on_reaped(exits)
        if numbers & {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}:
            self._signal_count += 1
            # A second signal, or one after the guardian's death, means to stop without a grace period.
            is_immediate = self._signal_count > 1 or os.getppid() != self._parent
            events += self._terminate("a signal", 0.0 if is_immediate else self._options.grace_seconds)
        return events

    def _on_lifeline(self) -> List[Event]:
        if self._options.lifeline is None or os.read(self._options.lifeline, 4096):
            return []
        self._selector.unregister(self._options.lifeline)
        self._is_orphaned = True
        return self._terminate("the end of the process that started this agent", ORPHAN_GRACE_SECONDS)

    def _terminate(self, reason: str, grace: float) -> List[Event]:
        self._log.print_line(f"stopping on {reason}")
        self._is_exiting = True
        # Set this first, so that the report of the stop has the reason.
        self._state = apply_event(self._state, AgentTerminated(time.monotonic()))
        events = [] if self._rank_group is None else self._rank_group.abandon_upload()
        return [*events, *self._stop(grace, is_graceful=not self._is_orphaned)]

    def _stop(self, grace: float, *, is_graceful: bool, stop_call: int = 0) -> List[Event]:
        if self._rank_group is None:
            return [PhaseReached(AgentPhase.ENDED)]
        if self._rank_group.is_finished or self._rank_group.is_uploading:
            return []
        self._apply_events([PhaseReached(AgentPhase.STOPPING)])
        return self._rank_group.stop(grace, is_graceful=is_graceful, stop_call=stop_call)

    def _on_messages(self) -> List[Event]:
        events: List[Event] = []
        for message in self._inbox.take():
            if isinstance(message, ReportAcknowledged):
                self._log_line(self._outage.record_answer(time.monotonic()))
                self._heartbeat = max(0.05, message.heartbeat_seconds)
                self._acknowledged = (message.attempt, message.phase)
            elif isinstance(message, NodeCutOff):
                events += self._fence_ranks(message.reason)
            elif isinstance(message, CollectorUnreachable):
                self._log_line(self._outage.record_failure(message.reason, time.monotonic()))
            elif self._should_execute(message):
                self._order = message.order
                events += self._execute(message)
        return events

    def _fence_ranks(self, reason: str) -> List[Event]:
        if self._rank_group is None or self._rank_group.is_finished:
            return []
        return [ProblemFound(AgentProblem(FENCED, reason)), *self._terminate(reason, FENCE_GRACE_SECONDS)]

    def _log_line(self, text: Optional[str]) -> None:
        if text is not None:
            self._log.print_line(text)

    def _should_execute(self, command: Command) -> bool:
        if command.job_uid != self._state.job_uid:
            self._log.print_line("refused a command for another job")
            return False
        return self._order is None or command.order > self._order

    def _execute(self, command: Command) -> List[Event]:
        self._options.pings.end_attempt(command)
        if command.kind == CommandKind.START:
            return self._start(command)
        if command.kind in (CommandKind.STOP, CommandKind.STOP_AT):
            return self._stop(command.grace_seconds, is_graceful=command.is_graceful, stop_call=command.stop_call)
        is_running = self._rank_group is not None and not self._rank_group.is_finished
        events: List[Event] = []
        if is_running and self._rank_group is not None:
            events += [PhaseReached(AgentPhase.STOPPING), *self._rank_group.kill()]
        elif self._rank_group is None:
            events.append(PhaseReached(AgentPhase.ENDED))
        if command.kind == CommandKind.EXIT:
            self._is_exiting = True
        return events

    def _start(self, command: Command) -> List[Event]:
        if self._is_exiting or (self._rank_group is not None and not self._rank_group.is_finished):
            self._log.print_line("refused to start: processes of the last attempt still run")
            return []
        # A new leader may repeat a Start that the previous leader has already sent.
        if command.attempt <= self._state.attempt:
            self._log.print_line(f"refused to start attempt {command.attempt} again")
            return []
        if self._state.address is None or self._state.problem is not None:
            return []  # the report has the problem
        plan, node_rank = self._options.context.plan, find_node_rank(self._state.node, command.peers)
        if node_rank is None:
            numbers = ", ".join(str(peer.node) for peer in command.peers)
            return [ProblemFound(AgentProblem("BadStart", f"Start for node {self._state.node} has nodes {numbers}"))]
        first_rank = node_rank * plan.procs_per_node
        self._state = begin_attempt(self._state, command.attempt, first_rank, plan.procs_per_node, time.monotonic())
        before, (self._state, context) = self._context, set_peers(self._state, self._context, command.peers, node_rank)
        path = os.path.join(context.run_dir, f"{command.attempt}.sock")
        self._context = context = replace(context, socket_path=path, attempt=command.attempt)
        try:
            context = change_source_folder(self._options.context, context, command.source, self._environment, self._log)
            self._context = context
            if context.network != before.network:
                self._log.print_line(
                    f"interface {self._state.interface} ({self._state.address}): {self._state.interface_why}"
                )
            if (context.host, context.plan, context.node) != (before.host, before.plan, before.node):
                opt_ml.prepare(context.root, context.plan, context.node, context.host)
            context = self._trainer_endpoint.begin_attempt(context, self._environment)
            resources = RankGroupResources(self._selector, self._log, self._options.port_socket, self._options.sync)
            rank_group = create_rank_group(context, self._environment, command.credentials, resources)
            self._options.pings.begin_attempt(command)
            self._rank_group = rank_group
            return self._rank_group.launch(self._environment)
        except OSError as error:
            return [ProblemFound(describe_problem(error)), PhaseReached(AgentPhase.ENDED)]

    def _may_exit(self) -> bool:
        if self._state.phase != AgentPhase.ENDED:
            self._ended_at = None
            return False
        now = time.monotonic()
        if self._ended_at is None:
            self._ended_at = now
        if not self._is_exiting:
            return now - max(self._ended_at, self._outage.last_answer_at) > UNREACHABLE_SECONDS
        is_acknowledged = self._acknowledged == (self._state.attempt, AgentPhase.ENDED)
        return is_acknowledged or self._is_orphaned or now - self._ended_at > LAST_REPORT_SECONDS

    def _finish(self) -> int:
        code = compute_exit_code(self._state)
        report = make_report(self._take_snapshot(), 0, time.monotonic())
        reason = termination.describe_failure(report)
        if reason is not None:
            opt_ml.write_failure(self._options.context.root, reason)
        if self._options.termination_log is not None:
            self._log_line(termination.write_summary(self._options.termination_log, report, code))
        self._log.flush(LAST_REPORT_SECONDS)
        return code
