"""The observed facts of a job at one moment. Every decision depends on them, the spec, the status and the time.

Backends create these in `observe`. Times are Unix seconds on the operator's clock.
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
"""The number of missing heartbeats after which a node counts as silent: two may be lost by accident."""


class ProcessState(StrEnum):
    """The state of a node's process (locally) or pod (on a cluster), as the backend observes it without the agent."""

    MISSING = "Missing"
    WAITING = "Waiting"  # the agent has not started: the pod is not scheduled or its image is being pulled
    RUNNING = "Running"
    EXITED = "Exited"


@dataclass(frozen=True)
class Problem:
    """The reason why a node can't start, can't work or has ended, if its agent can't report it.

    `reason` is one CamelCase word, `message` a sentence for the user without a full stop. `shortage` is the missing
    resource, in words that are equal for all nodes with the same shortage: "insufficient nvidia.com/gpu".
    """

    reason: str
    message: str
    shortage: str = ""


@dataclass(frozen=True)
class TerminationMessage:
    """The content of a pod's termination log, which the agent writes so that its result survives a lost report.

    `ranks` is the number of the node's ranks, `succeeded` the number of ranks with exit code 0. `first_failure` is the
    first rank of the node that failed. `terminated` is set if something other than muster stopped the agent.
    The user's code can write this file, too, so trust it only about its own node.
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
    """A node's process or pod. `exit_code` and `signal` are the agent's.

    `problem` is the backend's explanation of the state. `name` is the pod's name, `machine` the name of the cluster
    node that it is scheduled on since `scheduled_at`. `is_terminating` is set once the
    API server was asked to delete the pod.
    `replacement` of a MISSING process is the highest that the backend has observed for this node, or -1.
    `grace_seconds` and `memory_limit` are the owner's settings for the ranks; None and "" if unset.
    `has_running_sidecars` is set if the agent has EXITED and other containers of the pod still run.
    `termination_message` is set once the agent has EXITED and written one.

    For lost machines, by the time at which the operator observed it: `unreachable_since` is when the machine stopped
    answering the cluster or the cluster evicted the pod; `deletion_deadline` is when a requested deletion should be
    complete. `lost_at` is set once the job continues without the machine. Later reports of this process don't count.
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
    is_terminating: bool = False
    grace_seconds: float | None = None
    has_running_sidecars: bool = False
    termination_message: TerminationMessage | None = None
    memory_limit: str = ""
    unreachable_since: float | None = None
    deletion_deadline: float | None = None
    lost_at: float | None = None


@dataclass(frozen=True)
class RankFacts:
    """A rank's report with ages converted to times. `sequence` is the number of the latest report with this rank."""

    report: RankReport
    started_at: float | None = None
    ended_at: float | None = None
    stepped_at: float | None = None
    sequence: int = 0

    @property
    def has_exited(self) -> bool:
        """Whether the report says that the rank's process has exited."""
        return self.report.state == RankState.EXITED

    @property
    def has_succeeded(self) -> bool:
        """Whether the rank exited by itself with code 0."""
        report = self.report
        return self.has_exited and report.exit_code == 0 and report.reason is None and not report.stopped


@dataclass(frozen=True)
class MetricFacts:
    """The latest value of a metric on a node, and the time at which the rank wrote it."""

    value: MetricValue
    at: float


@dataclass(frozen=True)
class LauncherFacts:
    """The end of the node's launcher, and its time."""

    end: LauncherEnd
    ended_at: float
    sequence: int = 0

    @property
    def has_succeeded(self) -> bool:
        """Whether the launcher exited by itself with code 0."""
        return self.end.exit_code == 0 and self.end.reason is None


@dataclass(frozen=True)
class AgentFacts:
    """The latest report of a node's agent. `last_report_at` is when the last report arrived."""

    report: Report
    last_report_at: float
    ranks: tuple[RankFacts, ...] = ()
    metrics: tuple[MetricFacts, ...] = ()
    launcher: LauncherFacts | None = None
    terminated_at: float | None = None  # something other than the operator stopped the agent


@dataclass(frozen=True)
class NodeFacts:
    """One node of the job. `name` is `<job>-<node>`."""

    node: int
    name: str
    process: ProcessFacts
    agent: AgentFacts | None = None
    command: Command | None = None  # the last command sent to the agent
    command_sent_at: float | None = None  # when it was sent

    @property
    def current_agent(self) -> AgentFacts | None:
        """The agent of the node's current process; None if the last report came from an earlier replacement."""
        agent = self.agent
        return agent if agent is not None and agent.report.replacement >= self.process.replacement else None

    @property
    def ranks(self) -> tuple[RankFacts, ...]:
        """The ranks in the current agent's report."""
        agent = self.current_agent
        return () if agent is None else agent.ranks

    @property
    def launcher(self) -> LauncherFacts | None:
        """The end of the node's launcher; None while it runs."""
        agent = self.current_agent
        return None if agent is None else agent.launcher

    @property
    def is_ready(self) -> bool:
        """Whether the node's agent waits for the start command and has reported its address."""
        agent = self.current_agent
        if agent is None or self.process.state is not ProcessState.RUNNING:
            return False
        report = agent.report
        reachable = report.address is not None and report.port is not None
        return report.phase == AgentPhase.READY and report.problem is None and reachable

    @property
    def has_started(self) -> bool:
        """Whether the node has received the start command, or reports a start."""
        agent = self.current_agent
        if agent is not None and agent.report.attempt > 0:
            return True
        return self.command is not None and self.command.kind == CommandKind.START

    @property
    def has_ended(self) -> bool:
        """Whether the agent reports that all processes of the attempt have ended."""
        agent = self.current_agent
        return agent is not None and agent.report.phase == AgentPhase.ENDED

    @property
    def is_gone(self) -> bool:
        """Whether the node has no agent, and none will start without an action."""
        return self.process.state in (ProcessState.MISSING, ProcessState.EXITED)

    @property
    def is_placed(self) -> bool:
        """Whether the node's process is scheduled on a machine."""
        if self.process.state is ProcessState.WAITING:
            return self.process.scheduled_at is not None
        return self.process.state is not ProcessState.MISSING

    @property
    def has_no_report(self) -> bool:
        """Whether the node's process runs but its agent has not reported yet."""
        return self.process.state is ProcessState.RUNNING and self.current_agent is None

    @property
    def is_idle(self) -> bool:
        """Whether no rank runs on the node, and none will without an action."""
        return self.process.state is not ProcessState.RUNNING or self.has_ended

    @property
    def has_end_command(self) -> bool:
        """Whether the node's agent was sent a command to stop, to kill its ranks or to exit."""
        return self.command is not None and self.command.kind != CommandKind.START


@dataclass(frozen=True)
class StopRequest:
    """A user's request to stop the job."""

    at: float
    by: str  # shown to users: "Ctrl-C"
    grace_seconds: float


@dataclass(frozen=True)
class JobFacts:
    """The job's facts. `nodes` is ordered and has one entry for every node, even if it doesn't exist yet.

    `heartbeat_seconds` is the interval at which the job's agents report. `collector_started_at` is when the collector
    started: a restarted operator has received no earlier report. `refusal` explains why the spec creates no node.
    `strays` are the names of the job's surplus pods: beyond its nodes, or replaced. `has_outdated_pods` is set if a pod
    was made from an older spec. `problem` affects the whole job rather than one node. `warnings` are warnings for the
    user about a valid spec, such as fields without effect.
    """

    created_at: float
    nodes: tuple[NodeFacts, ...]
    heartbeat_seconds: float
    stop_request: StopRequest | None = None
    refusal: Problem | None = None
    strays: tuple[str, ...] = ()
    collector_started_at: float = 0.0
    has_outdated_pods: bool = False
    problem: Problem | None = None
    warnings: tuple[str, ...] = ()

    @property
    def is_idle(self) -> bool:
        """Whether no rank of the job runs, and none will without an action."""
        return all(node.is_idle for node in self.nodes)

    @property
    def is_gone(self) -> bool:
        """Whether no node has an agent."""
        return all(node.is_gone for node in self.nodes)

    @property
    def is_empty(self) -> bool:
        """Whether the job has no pod or process at all, not even an ended one."""
        return not self.strays and all(node.process.state is ProcessState.MISSING for node in self.nodes)

    def silent_at(self, node: NodeFacts) -> float | None:
        """When the node counts as silent if no report arrives; None if no report is expected."""
        agent = node.current_agent
        if agent is None or node.is_idle:
            return None
        return agent.last_report_at + SILENT_PACES * self.heartbeat_seconds

    def is_silent(self, node: NodeFacts, now: float) -> bool:
        """Whether the node's process exists but its agent has stopped reporting, so that its ranks are unknown."""
        at = self.silent_at(node)
        return at is not None and now >= at
