"""A simulated world: a model of the agents, and the real decisions."""

from dataclasses import dataclass, field, replace

from muster.api.spec.job import Job
from muster.api.status.status import Status
from muster.core.actions import Action, CreateNode, DeleteResource, KillNode, RemoveNode, SendCommand
from muster.core.decide import decide
from muster.core.edited_source import RequestedSource
from muster.core.fact_completion import complete_facts
from muster.core.facts import AgentFacts, JobFacts, NodeFacts, ProcessFacts, ProcessState, StopRequest
from muster.core.failure.problems import find_loss_time
from muster.core.failure.termination_log import read_termination_message
from muster.core.judge import judge
from muster.core.membership.members import set_node_count
from muster.core.problem import Problem
from muster.core.reports.merge import merge_report
from muster.core.status.summarise import summarise
from muster_worker.agent.termination import build_summary
from muster_worker.contract.collectives import GroupCollective
from muster_worker.contract.schema import (
    AgentPhase,
    AgentProblem,
    Command,
    CommandKind,
    LauncherEnd,
    Order,
    RankReport,
    RankState,
    Report,
)
from muster_worker.contract.source import EditedSource
from unit.core.builders import HEARTBEAT_SECONDS, T0, UID
from unit.core.message_rules import check_messages

NO_PROCESS = ProcessFacts(ProcessState.MISSING, replacement=-1)

NOT_READY_SECONDS = 50.0
"""The time until a cluster marks a disconnected machine as NotReady."""


@dataclass
class SimulatedRank:
    number: int
    exit_code: int | None = None
    signal: int | None = None
    ended_at: float | None = None
    stopped: bool = False
    lines: tuple[str, ...] = ()
    step: int | None = None
    highest_step_at: float | None = None
    activity: str | None = None
    phase: str | None = None
    phase_ended_at: float | None = None
    busy_seconds: float | None = None
    first_step_at: float | None = None
    first_script_step: int | None = None
    collectives: tuple[GroupCollective, ...] = ()

    def complete_step(self, at: float) -> None:
        if self.ended_at is None:
            self.step, self.highest_step_at, self.activity = (self.step or 0) + 1, at, None
            self.first_step_at = at if self.first_step_at is None else self.first_step_at

    def report_resumed_step(self, step: int, at: float) -> None:
        """Report the step of the checkpoint, as a script may do before its first step."""
        self.step, self.first_script_step, self.highest_step_at = step, step, at

    def end(
        self, at: float, exit_code: int | None, signal: int | None, line: str = "", *, stopped: bool = False
    ) -> None:
        if self.ended_at is None:
            self.exit_code, self.signal, self.ended_at = exit_code, signal, at
            self.lines, self.stopped = (line,) if line else (), stopped

    def report(self, now: float) -> RankReport:
        state = RankState.RUNNING if self.ended_at is None else RankState.EXITED
        age = None if self.ended_at is None else now - self.ended_at
        return RankReport(
            self.number,
            0,
            state,
            exit_code=self.exit_code,
            signal=self.signal,
            ended_age=age,
            stopped=self.stopped,
            last_lines=self.lines,
            step=self.step,
            step_age=None if self.highest_step_at is None else now - self.highest_step_at,
            first_step_age=None if self.first_step_at is None else now - self.first_step_at,
            first_script_step=self.first_script_step,
            activity=self.activity,
            collectives=self.collectives,
            phase=self.phase,
            busy_seconds=self.busy_seconds,
            phase_ended_age=None if self.phase_ended_at is None else now - self.phase_ended_at,
        )


@dataclass
class SimulatedNode:
    """A node's pod and its agent, and what the operator stores about them: `agent_facts`, `command`, `command_sent_at`.

    `rounds_until_start` is the number of rounds until its next pod starts, `rank_count` the number of ranks that an
    attempt starts. `started_attempts` has the attempts that it started, `sources` the edited code of each.
    """

    number: int
    rank_count: int
    process: ProcessFacts = NO_PROCESS
    phase: str | None = None
    attempt: int = 0
    sequence: int = 0
    ranks: list[SimulatedRank] = field(default_factory=list)
    is_frozen: bool = False
    order: Order | None = None
    rounds_until_start: int = 0
    started_attempts: list[int] = field(default_factory=list)
    sources: dict[int, EditedSource | None] = field(default_factory=dict)
    command: Command | None = None
    command_sent_at: float | None = None
    agent_facts: AgentFacts | None = None
    pending_reports: list[tuple[Report, float]] = field(default_factory=list)
    disconnected_at: float | None = None
    lost_at: float | None = None
    avoided_nodes: tuple[str, ...] = ()
    problem: AgentProblem | None = None
    terminated_at: float | None = None

    @property
    def is_disconnected(self) -> bool:
        """Whether its machine is disconnected: its processes continue, and its reports do not arrive."""
        return self.disconnected_at is not None

    @property
    def is_alive(self) -> bool:
        return self.process.state is ProcessState.RUNNING

    @property
    def node_rank(self) -> int:
        """Its position among the members of the attempt that its command starts."""
        members = [] if self.command is None else [peer.node for peer in self.command.peers]
        return members.index(self.number) if self.number in members else self.number

    @property
    def has_running_ranks(self) -> bool:
        """Whether one of its ranks runs and the operator can observe it."""
        return self.is_alive and not self.is_disconnected and any(entry.ended_at is None for entry in self.ranks)

    @property
    def is_over(self) -> bool:
        """Whether all ranks of its attempt have ended."""
        return all(entry.ended_at is not None for entry in self.ranks)

    def launcher(self, now: float) -> LauncherEnd | None:  # noqa: ARG002 - direct has no launcher process
        """Return the end of its launcher, or None."""
        return None

    def create(self, replacement: int, at: float) -> None:
        has_ended = self.process.state in (ProcessState.MISSING, ProcessState.EXITED)
        is_terminating = self.process.is_terminating and self.is_over
        assert has_ended or is_terminating or self.lost_at is not None, "a second pod was created beside a running one"
        assert replacement > self.process.replacement, "a pod was created twice"
        state = ProcessState.WAITING if self.rounds_until_start else ProcessState.RUNNING
        self.process = ProcessFacts(state, replacement, started_at=None if self.rounds_until_start else at)
        self.phase, self.attempt, self.sequence, self.ranks, self.order = None, 0, 0, [], None
        self.problem, self.terminated_at = None, None
        # The new pod is on another machine. The old machine may stay disconnected.
        self.disconnected_at, self.lost_at = None, None
        self.forget_observations()

    def disconnect(self, at: float) -> None:
        """Disconnect its machine."""
        if self.process.state is not ProcessState.MISSING and not self.is_disconnected:
            self.disconnected_at = at

    def reconnect(self, at: float) -> None:
        """Reconnect its machine. A pod that was deleted in the meantime is removed."""
        if self.is_disconnected:
            self.disconnected_at = None
            self.process = replace(self.process, unreachable_since=None)
            if self.process.is_terminating:
                self.remove(at)

    def remove_machine(self, at: float) -> None:
        """Power off its machine and delete its Node: Kubernetes then deletes the pod."""
        self.disconnected_at = None
        self.remove(at)

    def delete(self, at: float, grace: float) -> None:
        """Delete its pod. On a disconnected machine the pod stays, and is marked as terminating."""
        if not self.is_disconnected:
            self.remove(at)
        elif not self.process.is_terminating:
            self.process = replace(self.process, is_terminating=True, deletion_deadline=at + grace)

    def remove(self, at: float) -> None:
        self.exit(at, None, 9)
        self.process = ProcessFacts(ProcessState.MISSING, self.process.replacement)

    def forget_observations(self) -> None:
        """Clear what the operator stores about the node, as a restart does."""
        self.command, self.command_sent_at, self.agent_facts, self.lost_at = None, None, None, None
        if self.process.state is ProcessState.MISSING:
            self.process = NO_PROCESS

    def exit(self, at: float, exit_code: int | None, signal: int | None) -> None:
        if self.is_alive:
            for entry in self.ranks:
                entry.end(at, None, 9)
            text = build_summary(self._report(at), exit_code or 0).decode() if signal is None else ""
            self.process = replace(
                self.process,
                state=ProcessState.EXITED,
                exit_code=exit_code,
                signal=signal,
                ended_at=at,
                termination_message=read_termination_message(text),
            )

    def tick(self, now: float, first_rank: int) -> None:
        """Let the agent execute its command and send a report."""
        if self.disconnected_at is not None:
            if now >= self.disconnected_at + NOT_READY_SECONDS and self.process.unreachable_since is None:
                self.process = replace(self.process, unreachable_since=now)
            return
        if self.process.state is ProcessState.WAITING:
            self.rounds_until_start -= 1
            if self.rounds_until_start <= 0:
                self.process = replace(self.process, state=ProcessState.RUNNING, started_at=now, scheduled_at=now)
            return
        if not self.is_alive or self.is_frozen:
            return
        if self.command is not None and (self.order is None or self.command.order > self.order):
            self.order = self.command.order
            self._execute(self.command, now, first_rank)
        if self.process.state is ProcessState.EXITED:
            return
        if self.phase == AgentPhase.RUNNING and self.is_over:
            self.phase = AgentPhase.ENDED
        self.sequence += 1
        self.pending_reports.append((self._report(now), now))

    def take_reports(self, now: float) -> list[tuple[Report, float]]:  # noqa: ARG002 - each report arrives at once
        """Return the reports that arrive now, with the times of their arrival."""
        reports, self.pending_reports = self.pending_reports, []
        return reports

    def _execute(self, command: Command, now: float, first_rank: int) -> None:
        if command.kind == CommandKind.EXIT:
            self.exit(now, 0, None)
        elif command.kind == CommandKind.START and command.attempt > self.attempt:
            self.attempt, self.phase = command.attempt, AgentPhase.RUNNING
            self.started_attempts.append(self.attempt)
            self.sources[self.attempt] = command.source
            self.ranks = [SimulatedRank(first_rank + local) for local in range(self.rank_count)]
        elif command.kind in (CommandKind.STOP, CommandKind.KILL):
            for entry in self.ranks:
                entry.end(now, None, 15, stopped=True)

    def _report(self, now: float) -> Report:
        self.phase = self.phase or AgentPhase.READY
        return Report(
            UID,
            self.number,
            self.process.replacement,
            self.attempt,
            self.sequence,
            self.phase,
            address=f"127.0.0.{self.number + 1}",
            port=29400,
            ranks=tuple(entry.report(now) for entry in self.ranks),
            launcher=self.launcher(now),
            problem=self.problem,
            terminated_age=None if self.terminated_at is None else now - self.terminated_at,
        )

    def facts(self) -> NodeFacts:
        process = replace(self.process, lost_at=self.lost_at)
        return NodeFacts(
            self.number, f"digits-{self.number}", process, self.agent_facts, self.command, self.command_sent_at
        )


@dataclass
class World:
    """A job and its nodes. In each round agents act, reports arrive, and muster decides, writes the status and acts.

    `status` is the last written status, `request` the value of the annotation that requests a restart, `source` the
    requested edited code.
    """

    job: Job
    nodes: list[SimulatedNode]
    now: float = T0
    stop: StopRequest | None = None
    status: Status = field(default_factory=Status)
    leader_term: int = 1
    is_deleted: bool = False
    collector_started_at: float = T0
    request: str | None = None
    source: RequestedSource | None = None

    def facts(self) -> JobFacts:
        nodes = tuple(entry.facts() for entry in self.nodes)
        return JobFacts(
            T0,
            nodes,
            HEARTBEAT_SECONDS,
            self.stop,
            collector_started_at=self.collector_started_at,
            restart_request=self.request,
            requested_source=self.source,
        )

    def run_round(self, *, newest_first: bool = False, applied: int | None = None) -> tuple[Action, ...]:
        """Run one round and return the decision. With `applied` the operator is killed after this many actions."""
        self.now += 0.1
        self.run_agents(newest_first=newest_first)
        return self.reconcile(applied=applied)

    def run_agents(self, *, newest_first: bool = False) -> None:
        """Let the agents act, and deliver their reports."""
        procs = self.job.spec.procs_per_node
        for entry in self.nodes:
            entry.tick(self.now, entry.node_rank * (procs if isinstance(procs, int) else 1))
            reports = entry.take_reports(self.now)
            for report, at in reversed(reports) if newest_first else reports:
                entry.agent_facts = merge_report(entry.agent_facts, report, at)

    def reconcile(self, *, applied: int | None = None) -> tuple[Action, ...]:
        """Decide, write the status and apply the actions. For `applied` see `run_round`."""
        self._record_lost_nodes()
        facts = complete_facts(self.job, self.status, self.facts(), self.now)
        job = set_node_count(self.job, facts)
        outcome = judge(job, self.status, facts, self.now)
        actions = decide(job, facts, outcome, self.now, self.leader_term)
        self.status = check_messages(summarise(job, self.status, facts, outcome, actions, self.now))
        for action in actions[:applied]:
            self.apply(action)
        if applied is not None:
            self.restart_operator()
        return actions

    def _record_lost_nodes(self) -> None:
        """Store when nodes were lost, as the backends do: a lost machine that returns stays lost."""
        facts = self.facts()
        for entry, node in zip(self.nodes, facts.nodes, strict=True):
            at = find_loss_time(node, facts)
            if at is not None and self.now >= at:
                entry.lost_at = at

    def restart_operator(self) -> None:
        self.leader_term += 1
        self.collector_started_at = self.now
        for entry in self.nodes:
            entry.forget_observations()

    def decide_again(self, previous: Status) -> tuple[Action, ...]:
        """Return the decision for the current facts and the status `previous`."""
        facts = complete_facts(self.job, previous, self.facts(), self.now)
        job = set_node_count(self.job, facts)
        return decide(job, facts, judge(job, previous, facts, self.now), self.now, self.leader_term)

    def apply(self, action: Action) -> None:
        if isinstance(action, CreateNode):
            self.nodes[action.node].create(action.replacement, self.now)
            self.nodes[action.node].avoided_nodes = action.avoided_nodes
        elif isinstance(action, KillNode):
            if self.nodes[action.node].is_disconnected:
                self.nodes[action.node].delete(self.now, 1.0)
            else:
                self.nodes[action.node].exit(self.now, None, 9)
        elif isinstance(action, RemoveNode):
            self.nodes[action.node].delete(self.now, action.grace_seconds)
        elif isinstance(action, DeleteResource):
            self.is_deleted = True
        elif isinstance(action, SendCommand):
            for number in action.nodes:
                self.nodes[number].command, self.nodes[number].command_sent_at = action.command, self.now

    def kill_container(self, number: int) -> None:
        """Kill a pod's container with all its processes."""
        node = self.nodes[number]
        if node.is_disconnected:
            return
        node.exit(self.now, None, 9)
        if node.process.state is ProcessState.EXITED:
            node.process = replace(node.process, problem=Problem("OOMKilled", "container trainer ran out of memory"))

    @property
    def is_over(self) -> bool:
        facts = complete_facts(self.job, self.status, self.facts(), self.now)
        return judge(set_node_count(self.job, facts), self.status, facts, self.now).ends_job and all(
            entry.has_no_agent for entry in facts.nodes
        )
