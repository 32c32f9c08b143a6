"""The agent of one node: a single thread owns all state; signals, sockets, pipes and the collector are its events."""

from __future__ import annotations

import os
import selectors
import signal
import socket
import time
from dataclasses import dataclass, replace
from typing import List, Mapping, Optional, Tuple

from muster_worker.agent import termination
from muster_worker.agent.exchange import Acknowledged, Inbox, Reporter, Unreachable
from muster_worker.agent.log import Log
from muster_worker.agent.meeting import meet
from muster_worker.agent.outage import Outage
from muster_worker.agent.reports import Observation, Snapshot, make_report
from muster_worker.agent.state import Event, NodeState, PhaseReached, ProblemFound, Terminated, apply, begin, exit_code
from muster_worker.contract.schema import AgentPhase, AgentProblem, Command, CommandKind, Order, Report
from muster_worker.launchers.base import Way
from muster_worker.launchers.environment import Place
from muster_worker.launchers.registry import find_launcher
from muster_worker.machine import processes
from muster_worker.rank_group import memory_limit
from muster_worker.rank_group.group import RankGroup
from muster_worker.rank_group.registry import Handler
from muster_worker.rank_group.synced_group import SyncedRankGroup
from muster_worker.sagemaker import opt_ml

FIRST_HEARTBEAT_SECONDS = 1.0
"""Until the collector says what it wants."""

ORPHAN_GRACE_SECONDS = 2.0
"""What ranks get when the agent's parent is gone: nobody is left who wants their work, and nothing may stay."""

LAST_WORD_SECONDS = 3.0
"""How long an agent that has to go tries to deliver its last report."""

UNREACHABLE_SECONDS = 60.0
"""An agent whose ranks have ended leaves when the collector has been away for so long."""


@dataclass(frozen=True)
class Setting:
    """What the agent was started with: everything of a `Place` but the peers, which Start brings.

    `grace_seconds` is what ranks get after the agent's own SIGTERM. `port` is held for the job, None where none is.
    `sync` is the socket of the process that syncs files with S3, None where the job has no files there.
    """

    place: Place
    grace_seconds: float
    termination_log: Optional[str]
    lifeline: Optional[int]
    port: Optional[socket.socket] = None
    sync: Optional[str] = None


class Node:
    """What an agent does, in one thread: `run` handles events until it is told to exit."""

    def __init__(self, setting: Setting, state: NodeState, reporter: Reporter, inbox: Inbox, log: Log) -> None:
        self._setting = setting
        self._place = setting.place
        self._state = state
        self._reporter = reporter
        self._inbox = inbox
        self._log = log
        self._selector = selectors.DefaultSelector()
        self._base: Mapping[str, str] = dict(os.environ)
        self._rank_group: Optional[SyncedRankGroup] = None
        self._order: Optional[Order] = None  # of the last command that was obeyed
        self._heartbeat = FIRST_HEARTBEAT_SECONDS
        self._next_report_at = 0.0
        self._acknowledged: Tuple[int, str] = (-1, "")
        self._outage = Outage(time.monotonic())
        self._kills = memory_limit.MemoryKills(memory_limit.reader(), time.monotonic())
        self._observations: Mapping[int, Observation] = {}  # when the last report was made
        self._leaving = False  # told to go, once nothing runs
        self._ended_at: Optional[float] = None  # the last process was gone
        self._orphaned = False  # nobody is left to report to
        self._signals = 0
        self._parent = os.getppid()
        self._wake_reader, self._wake_writer = os.pipe()

    def run(self) -> int:
        """Live until told to leave; the agent's exit code."""
        self._listen()
        while not self._may_leave():
            events: List[Event] = []
            for key, _ in self._selector.select(self._timeout()):
                handler: Handler = key.data
                events += handler()
            if self._rank_group is not None:
                events += self._rank_group.step()
            self._learn(events)
        return self._farewell()

    def _listen(self) -> None:
        for descriptor in (self._wake_reader, self._wake_writer):
            os.set_blocking(descriptor, False)
        signal.set_wakeup_fd(self._wake_writer, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: None)  # the wake-up carries the number
        self._selector.register(self._wake_reader, selectors.EVENT_READ, self._on_signals)
        self._selector.register(self._inbox.descriptor, selectors.EVENT_READ, self._on_news)
        if self._setting.lifeline is not None:
            self._selector.register(self._setting.lifeline, selectors.EVENT_READ, self._on_lifeline)

    def _timeout(self) -> float:
        waits = [self._next_report_at - time.monotonic()]
        if self._rank_group is not None and self._rank_group.next_step_in is not None:
            waits.append(self._rank_group.next_step_in)
        if self._leaving and self._ended_at is not None:
            waits.append(self._ended_at + LAST_WORD_SECONDS - time.monotonic())
        return max(0.0, min(waits))

    def _learn(self, events: List[Event]) -> None:
        before = self._state
        for event in self._kills.explain(events, time.monotonic(), self._memory):
            self._state = apply(self._state, event)
        # a metric alone can wait for the heartbeat
        if replace(before, metrics=()) != replace(self._state, metrics=()) or time.monotonic() >= self._next_report_at:
            self._publish()

    def _memory(self, rank: int) -> int:
        observation = self._observations.get(rank)
        return 0 if observation is None else observation.rss_bytes or 0

    def _publish(self) -> None:
        self._kills.look(time.monotonic())
        self._reporter.offer(self._snapshot())
        self._next_report_at = time.monotonic() + self._heartbeat

    def _snapshot(self) -> Snapshot:
        lines: Tuple[str, ...] = ()
        if self._rank_group is not None:
            self._observations, reported = self._rank_group.observe()
            lines = self._rank_group.launcher_lines
            for metric in reported:
                self._state = apply(self._state, metric)
        return Snapshot(self._state, self._observations, lines, self._log.dropped_lines)

    def _on_signals(self) -> List[Event]:
        try:
            numbers = set(os.read(self._wake_reader, 4096))
        except BlockingIOError:
            return []
        events: List[Event] = []
        if signal.SIGCHLD in numbers:
            ended = processes.reap()
            if self._rank_group is not None:
                events += self._rank_group.on_reaped(ended)
        if numbers & {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}:
            self._signals += 1
            # somebody who asks twice, or who has killed the guardian, means at once
            at_once = self._signals > 1 or os.getppid() != self._parent
            events += self._terminate("a signal", 0.0 if at_once else self._setting.grace_seconds)
        return events

    def _on_lifeline(self) -> List[Event]:
        if self._setting.lifeline is None or os.read(self._setting.lifeline, 4096):
            return []
        self._selector.unregister(self._setting.lifeline)
        self._orphaned = True
        return self._terminate("the end of the process that started this agent", ORPHAN_GRACE_SECONDS)

    def _terminate(self, why: str, grace: float) -> List[Event]:
        self._log.say(f"stopping on {why}")
        self._leaving = True
        # the report that it stops says why
        self._state = apply(self._state, Terminated(time.monotonic()))
        left = [] if self._rank_group is None else self._rank_group.leave()
        return [*left, *self._stop(grace)]

    def _stop(self, grace: float) -> List[Event]:
        if self._rank_group is None:
            return [PhaseReached(AgentPhase.ENDED)]
        if self._rank_group.finished or self._rank_group.uploading:
            return []
        self._learn([PhaseReached(AgentPhase.STOPPING)])
        return self._rank_group.stop(grace)

    def _on_news(self) -> List[Event]:
        events: List[Event] = []
        for news in self._inbox.take():
            if isinstance(news, Acknowledged):
                self._say(self._outage.answered(time.monotonic()))
                self._heartbeat = max(0.05, news.heartbeat_seconds)
                self._acknowledged = (news.attempt, news.phase)
            elif isinstance(news, Unreachable):
                self._say(self._outage.failed(news.why, time.monotonic()))
            elif self._is_newer(news):
                self._order = news.order
                events += self._obey(news)
        return events

    def _say(self, text: Optional[str]) -> None:
        if text is not None:
            self._log.say(text)

    def _is_newer(self, command: Command) -> bool:
        if command.job_uid != self._state.job_uid:
            self._log.say("refused a command for another job")
            return False
        return self._order is None or command.order > self._order

    def _obey(self, command: Command) -> List[Event]:
        if command.kind == CommandKind.START:
            return self._start(command)
        if command.kind == CommandKind.STOP:
            return self._stop(command.grace_seconds)
        running = self._rank_group is not None and not self._rank_group.finished
        events: List[Event] = []
        if running and self._rank_group is not None:
            events += [PhaseReached(AgentPhase.STOPPING), *self._rank_group.kill()]
        elif self._rank_group is None:
            events.append(PhaseReached(AgentPhase.ENDED))
        if command.kind == CommandKind.EXIT:
            self._leaving = True
        return events

    def _start(self, command: Command) -> List[Event]:
        if self._leaving or (self._rank_group is not None and not self._rank_group.finished):
            self._log.say("refused to start: the last attempt's processes are still there")
            return []
        # an operator that took over a moment ago may not know that the one before it has told this node
        if command.attempt <= self._state.attempt:
            self._log.say(f"refused to start attempt {command.attempt} again")
            return []
        if self._state.address is None or self._state.problem is not None:
            return []  # the report says what is wrong
        plan = self._setting.place.plan
        if tuple(peer.node for peer in command.peers) != tuple(range(plan.nodes)):
            return [
                ProblemFound(AgentProblem("BadStart", f"told to start with {len(command.peers)} of {plan.nodes} nodes"))
            ]
        first_rank = self._setting.place.node * plan.procs_per_node
        self._state = begin(self._state, command.attempt, first_rank, plan.procs_per_node, time.monotonic())
        path = os.path.join(self._setting.place.run, f"{command.attempt}.sock")
        before, (self._state, place) = self._place, meet(self._state, self._place, command.peers)
        self._place = place = replace(place, socket=path, attempt=command.attempt)
        try:
            if place.network != before.network:
                self._log.say(f"interface {self._state.interface} ({self._state.address}): {self._state.interface_why}")
                opt_ml.prepare(place.root, plan, place.node, place.host)
            world = None
            if self._setting.port is not None:
                way = Way(self._setting.port, self._selector, self._log)
                world = find_launcher(plan.launcher).join_world(place, self._base, command.credentials, way)
            rank_group = RankGroup(place, self._selector, self._log, world)
            self._rank_group = SyncedRankGroup(rank_group, self._setting.sync, self._selector, self._log)
            return self._rank_group.launch(self._base)
        except OSError as error:
            problem = AgentProblem("RanksNotStarted", f"the ranks can't be started: {error}")
            return [ProblemFound(problem), PhaseReached(AgentPhase.ENDED)]

    def _may_leave(self) -> bool:
        if self._state.phase != AgentPhase.ENDED:
            self._ended_at = None
            return False
        now = time.monotonic()
        if self._ended_at is None:
            self._ended_at = now
        if not self._leaving:
            return now - max(self._ended_at, self._outage.heard_at) > UNREACHABLE_SECONDS
        is_told = self._acknowledged == (self._state.attempt, AgentPhase.ENDED)
        return is_told or self._orphaned or now - self._ended_at > LAST_WORD_SECONDS

    def _farewell(self) -> int:
        code = exit_code(self._state)
        report = make_report(self._snapshot(), 0, time.monotonic())
        why = _last_words(report)
        if why is not None:
            opt_ml.write_failure(self._setting.place.root, why)
        if self._setting.termination_log is not None:
            try:
                with open(self._setting.termination_log, "wb") as file:
                    file.write(termination.summary(report, code))
            except OSError as error:
                self._log.say(f"no termination log: {error}")
        self._log.flush(LAST_WORD_SECONDS)
        return code


def _last_words(report: Report) -> Optional[str]:
    """What output/failure should say; None when nothing failed."""
    if report.problem is not None:
        return report.problem.message
    first = termination.first_failure(report)
    if first is not None:
        return "\n".join(first.last_lines)
    if report.launcher is not None and report.launcher.exit_code != 0:
        return "\n".join(report.launcher.last_lines)
    return None
