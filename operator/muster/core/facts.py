"""What is known of a job at one moment: the only input of a decision besides the job itself and the time.

Backends build these in `observe`; the plan and the status read them. Times are Unix seconds on the operator's clock.
"""

from dataclasses import dataclass
from enum import StrEnum

from muster_worker.contract.schema import (
    AgentPhase,
    AgentProblem,
    Command,
    CommandKind,
    LauncherEnd,
    MetricValue,
    RankReport,
    RankState,
    Report,
)

SILENT_PACES = 3
"""A node is silent after that many heartbeats without a report: two may be lost by accident."""


class ProcessState(StrEnum):
    """A node's process (locally) or pod (on a cluster), as its backend sees it without asking the agent."""

    MISSING = "Missing"
    WAITING = "Waiting"  # it exists, and its agent has not begun: it is being placed, or its image is fetched
    RUNNING = "Running"
    EXITED = "Exited"


@dataclass(frozen=True)
class Problem:
    """What keeps a node from being there or at work, or what ended it, where its agent can't tell.

    `reason` is one CamelCase word, `message` a sentence for the job's owner, without a full stop. `lacks` is what is
    missing, where something is, in words that nodes share which miss the same: "insufficient nvidia.com/gpu".
    """

    reason: str
    message: str
    lacks: str = ""


@dataclass(frozen=True)
class TerminationMessage:
    """What a node's agent left in its pod's termination log: how the node ended, even if no report arrived.

    `ranks` counts those that it had, `succeeded` those of them that ended with exit code 0. `first_failure` is the rank
    that failed before all others of the node, `terminated` says that the agent was stopped, but not by muster.
    Its content can come from the job itself, so it speaks of its node only.
    """

    job_uid: str
    node: int
    replacement: int
    attempt: int
    ranks: int = 0
    succeeded: int = 0
    terminated: bool = False
    problem: AgentProblem | None = None
    launcher: LauncherEnd | None = None
    first_failure: RankReport | None = None


@dataclass(frozen=True)
class ProcessFacts:
    """`exit_code` and `signal` are the agent's own. `problem` is what the backend knows of why it is in this state.

    `name` is the pod's and `machine` that of the cluster's node that it is placed on; `scheduled_at` is when it was.
    `is_leaving` says that its deletion was asked for, by whomever: it is gone in a moment.
    The replacement of a MISSING process is the highest that its backend has seen of the node, -1 when it has seen none.
    `grace_seconds` is how long its ranks get from SIGTERM to SIGKILL by what its owner wrote; None: not set.
    `memory_limit` is what its ranks may use together, as its owner wrote it; "" without a limit.
    `lingers` says that the agent has EXITED and other containers of its pod still run. `termination_message` is set
    once it has EXITED and left one.

    What the cluster says of its machine, by when the operator saw it: `cut_off_at` is since when the machine doesn't
    answer the cluster, or the cluster gave the pod up; `gone_by` when a deletion that was asked for should be done.
    `lost_at` is set once the job goes on without the node's machine: whatever is heard of this process afterwards
    comes too late.
    """

    state: ProcessState
    replacement: int = 0
    exit_code: int | None = None
    signal: int | None = None
    started_at: float | None = None
    ended_at: float | None = None
    problem: Problem | None = None
    name: str | None = None
    machine: str | None = None
    scheduled_at: float | None = None
    is_leaving: bool = False
    grace_seconds: float | None = None
    lingers: bool = False
    termination_message: TerminationMessage | None = None
    memory_limit: str = ""
    cut_off_at: float | None = None
    gone_by: float | None = None
    lost_at: float | None = None


@dataclass(frozen=True)
class RankFacts:
    """A rank's report with its ages turned into times. `sequence` is the newest report's that named the rank."""

    report: RankReport
    started_at: float | None = None
    ended_at: float | None = None
    stepped_at: float | None = None
    sequence: int = 0

    @property
    def has_exited(self) -> bool:
        """Whether the rank is reported dead."""
        return self.report.state == RankState.EXITED


@dataclass(frozen=True)
class MetricFacts:
    """A metric's latest value on a node, and when the rank wrote it."""

    value: MetricValue
    at: float


@dataclass(frozen=True)
class LauncherFacts:
    """How the node's launcher ended, and when."""

    end: LauncherEnd
    ended_at: float
    sequence: int = 0


@dataclass(frozen=True)
class AgentFacts:
    """The newest report of a node's agent. `heard_at` is when any report of it last came."""

    report: Report
    heard_at: float
    ranks: tuple[RankFacts, ...] = ()
    metrics: tuple[MetricFacts, ...] = ()
    launcher: LauncherFacts | None = None
    terminated_at: float | None = None  # the agent was stopped, but not by the operator


@dataclass(frozen=True)
class NodeFacts:
    """One node of the job. `name` is what people call it: `<job>-<node>`."""

    node: int
    name: str
    process: ProcessFacts
    agent: AgentFacts | None = None
    command: Command | None = None  # the last one given to the agent
    commanded_at: float | None = None  # when it was given

    @property
    def current_agent(self) -> AgentFacts | None:
        """The agent of the node's present process; what an earlier replacement said is the past."""
        agent = self.agent
        return agent if agent is not None and agent.report.replacement >= self.process.replacement else None

    @property
    def ranks(self) -> tuple[RankFacts, ...]:
        """What the node's present agent says of its ranks."""
        agent = self.current_agent
        return () if agent is None else agent.ranks

    @property
    def is_ready(self) -> bool:
        """Whether the node's agent waits for Start and said where it can be reached."""
        agent = self.current_agent
        if agent is None or self.process.state is not ProcessState.RUNNING:
            return False
        report = agent.report
        reachable = report.address is not None and report.port is not None
        return report.phase == AgentPhase.READY and report.problem is None and reachable

    @property
    def has_started(self) -> bool:
        """Whether the node was told to start its ranks, or did."""
        agent = self.current_agent
        if agent is not None and agent.report.attempt > 0:
            return True
        return self.command is not None and self.command.kind == CommandKind.START

    @property
    def has_ended(self) -> bool:
        """Whether the agent said that no process of the attempt is left."""
        agent = self.current_agent
        return agent is not None and agent.report.phase == AgentPhase.ENDED

    @property
    def is_gone(self) -> bool:
        """Whether the node's agent does not exist (yet, or any more), and will not come into being by itself."""
        return self.process.state in (ProcessState.MISSING, ProcessState.EXITED)

    @property
    def is_placed(self) -> bool:
        """Whether the node's process has its place on a machine."""
        if self.process.state is ProcessState.WAITING:
            return self.process.scheduled_at is not None
        return self.process.state is not ProcessState.MISSING

    @property
    def is_mute(self) -> bool:
        """Whether the node's process runs and nobody has heard its agent yet."""
        return self.process.state is ProcessState.RUNNING and self.current_agent is None

    @property
    def is_settled(self) -> bool:
        """Whether no rank of the job runs on the node, and none will without an action."""
        return self.process.state is not ProcessState.RUNNING or self.has_ended

    @property
    def is_told_to_end(self) -> bool:
        """Whether the node's agent was told to stop, to kill its ranks or to leave."""
        return self.command is not None and self.command.kind != CommandKind.START


@dataclass(frozen=True)
class StopRequest:
    """A request to end the job before it is done."""

    at: float
    by: str  # for people: "Ctrl-C"
    grace_seconds: float


@dataclass(frozen=True)
class JobFacts:
    """`nodes` has an entry for each of the job's nodes, ordered, also for those that don't exist yet.

    `created_at` is when the job was created. `heartbeat_seconds` is the pace that the collector gives the job's agents,
    and `listening_since` when it began to hear them: a restarted operator knows of no report before that. `refusal`
    says why no node of this job can be made as it is written. `strays` are the names of pods that are the job's and no
    longer wanted: beyond its nodes, or replaced. `outdated` says that a pod of the job was made from another
    spec than the present one. `problem` is what keeps the job as a whole from going on, where it is none of its nodes'.
    `remarks` are what the job's owner should know of the spec although it is valid, such as fields that nothing heeds.
    """

    created_at: float
    nodes: tuple[NodeFacts, ...]
    heartbeat_seconds: float
    stop_request: StopRequest | None = None
    refusal: Problem | None = None
    strays: tuple[str, ...] = ()
    listening_since: float = 0.0
    outdated: bool = False
    problem: Problem | None = None
    remarks: tuple[str, ...] = ()

    @property
    def is_settled(self) -> bool:
        """Whether no rank of the job runs, and none will without an action."""
        return all(node.is_settled for node in self.nodes)

    @property
    def is_gone(self) -> bool:
        """Whether no node's agent exists."""
        return all(node.is_gone for node in self.nodes)

    @property
    def is_empty(self) -> bool:
        """Whether the job has no pod or process, not even one that has ended."""
        return not self.strays and all(node.process.state is ProcessState.MISSING for node in self.nodes)

    def silent_at(self, node: NodeFacts) -> float | None:
        """When the node counts as silent if no report comes; None when no more reports are due."""
        agent = node.current_agent
        if agent is None or node.is_settled:
            return None
        return agent.heard_at + SILENT_PACES * self.heartbeat_seconds

    def is_silent(self, node: NodeFacts, now: float) -> bool:
        """Whether the node's ranks are unknown: its process is there, but its agent says nothing."""
        at = self.silent_at(node)
        return at is not None and now >= at
