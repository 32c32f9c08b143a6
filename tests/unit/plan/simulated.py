"""A simulated world: agents as a pure model that obeys (or not), driven by the real decisions."""

import dataclasses
from dataclasses import dataclass, field, replace

from muster.api.spec import Job
from muster.api.status import Status
from muster.plan.actions import Action, CreateNode, KillNode, SendCommand
from muster.plan.decide import decide
from muster.plan.facts import AgentFacts, JobFacts, NodeFacts, ProcessFacts, ProcessState, StopRequest
from muster.plan.nodes import is_gone
from muster.plan.outcome import judge
from muster.ranks.merge import merge
from muster.status.summarise import summarise
from muster_worker.contract import AgentPhase, Command, CommandKind, RankReport, RankState, Report
from unit.plan.builders import HEARTBEAT_SECONDS, T0, UID


@dataclass
class SimulatedRank:
    number: int
    exit_code: int | None = None
    signal: int | None = None
    ended_at: float | None = None
    stopped: bool = False
    lines: tuple[str, ...] = ()

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
        )


@dataclass
class SimulatedNode:
    number: int
    starts: int
    process: ProcessFacts = field(default_factory=lambda: ProcessFacts(ProcessState.MISSING, generation=-1))
    phase: str | None = None
    incarnation: int = 0
    sequence: int = 0
    ranks: list[SimulatedRank] = field(default_factory=list)
    hangs: bool = False
    command: Command | None = None
    commanded_at: float | None = None
    known: AgentFacts | None = None
    mail: list[tuple[Report, float]] = field(default_factory=list)

    @property
    def is_alive(self) -> bool:
        return self.process.state is ProcessState.RUNNING

    def leave(self, at: float, exit_code: int | None, signal: int | None) -> None:
        if self.is_alive:
            self.process = replace(
                self.process, state=ProcessState.EXITED, exit_code=exit_code, signal=signal, ended_at=at
            )
            for entry in self.ranks:
                entry.end(at, None, 9)

    def tick(self, now: float, first_rank: int) -> None:
        """The agent does what it was told, and writes a report."""
        if not self.is_alive or self.hangs:
            return
        kind = self.command.kind if self.command else None
        if kind == CommandKind.EXIT:
            self.leave(now, 0, None)
            return
        if kind == CommandKind.START and self.incarnation == 0:
            self.incarnation, self.phase = 1, AgentPhase.RUNNING
            self.ranks = [SimulatedRank(first_rank + local) for local in range(self.starts)]
        if kind in (CommandKind.STOP, CommandKind.KILL):
            for entry in self.ranks:
                entry.end(now, None, 15, stopped=True)
        if self.phase == AgentPhase.RUNNING and all(entry.ended_at is not None for entry in self.ranks):
            self.phase = AgentPhase.ENDED
        self.sequence += 1
        self.mail.append((self._report(now), now))

    def _report(self, now: float) -> Report:
        self.phase = self.phase or AgentPhase.READY
        return Report(
            UID,
            self.number,
            0,
            self.incarnation,
            self.sequence,
            self.phase,
            address=f"127.0.0.{self.number + 1}",
            port=29400,
            ranks=tuple(entry.report(now) for entry in self.ranks),
        )

    def facts(self) -> NodeFacts:
        return NodeFacts(
            self.number, f"digits-{self.number}", self.process, self.known, self.command, self.commanded_at
        )


@dataclass
class World:
    """`turn` is once around: agents act, reports arrive, muster decides, acts and tells."""

    job: Job
    nodes: list[SimulatedNode]
    now: float = T0
    stop: StopRequest | None = None
    status: Status = field(default_factory=Status)

    def facts(self) -> JobFacts:
        return JobFacts(T0, tuple(entry.facts() for entry in self.nodes), HEARTBEAT_SECONDS, self.stop)

    def turn(self, *, newest_first: bool = False) -> None:
        self.now += 0.1
        procs = self.job.spec.procs_per_node
        for entry in self.nodes:
            entry.tick(self.now, entry.number * (procs if isinstance(procs, int) else 1))
            for report, at in reversed(entry.mail) if newest_first else entry.mail:
                entry.known = merge(entry.known, report, at)
            entry.mail.clear()
        facts = self.facts()
        outcome = judge(self.job, self.status, facts, self.now)
        actions = decide(self.job, facts, outcome, self.now, 1)
        self.status = summarise(self.job, self.status, facts, outcome, actions, self.now)
        for action in actions:
            self.apply(action)

    def decide_again(self, previous: Status) -> tuple[Action, ...]:
        """What would be done now, had the status been `previous`."""
        facts = self.facts()
        return decide(self.job, facts, judge(self.job, previous, facts, self.now), self.now, 1)

    def apply(self, action: Action) -> None:
        if isinstance(action, CreateNode):
            entry = self.nodes[action.node]
            entry.process = dataclasses.replace(entry.process, state=ProcessState.RUNNING, started_at=self.now)
        elif isinstance(action, KillNode):
            self.nodes[action.node].leave(self.now, None, 9)
        elif isinstance(action, SendCommand):
            for number in action.nodes:
                self.nodes[number].command, self.nodes[number].commanded_at = action.command, self.now

    @property
    def is_over(self) -> bool:
        facts = self.facts()
        return judge(self.job, self.status, facts, self.now).is_decided and all(is_gone(entry) for entry in facts.nodes)
