"""The observed facts of a job at one moment. Decisions depend only on them, the spec, the status and the time.

Backends create these in `observe`. Times are Unix seconds on the operator's clock.
"""

from dataclasses import dataclass
from enum import StrEnum

from muster.core.devices import Devices
from muster.core.edited_source import RequestedSource
from muster.core.problem import Problem
from muster.core.termination_message import TerminationMessage
from muster_worker.contract.schema import (
    AgentPhase,
    Command,
    CommandKind,
    LauncherEnd,
    MetricValue,
    RankReport,
    RankState,
    Report,
)

MAX_MISSED_HEARTBEATS = 3
"""The number of missed heartbeats after which a node counts as silent. Two heartbeats may be lost by accident."""


class ProcessState(StrEnum):
    """The state of a node's process (locally) or pod (on a cluster), as the backend observes it without the agent."""

    MISSING = "Missing"
    WAITING = "Waiting"  # the agent has not started: the pod is not scheduled or its image is being pulled
    RUNNING = "Running"
    EXITED = "Exited"


@dataclass(frozen=True)
class ProcessFacts:
    """A node's process or pod. `exit_code` and `signal` are the agent's.

    `problem` is the backend's explanation of the state. `name` is the pod's name. `kube_node` is the Kubernetes node on
    which the pod is scheduled since `scheduled_at`. `is_terminating` is set once the pod's deletion was requested, at
    `deletion_requested_at`. `replacement` of a MISSING process is the highest observed number, or -1. `grace_seconds`
    and `memory_limit` are the pod's settings for the ranks; None and "" if unset. `has_running_sidecars` is set if the
    agent has EXITED and other containers of the pod still run. `termination_message` is what the agent wrote when it
    EXITED. `devices` is None if the ranks' container requests no accelerators.

    `unreachable_since` is when the operator observed that the Kubernetes node is unreachable or that the cluster
    evicted the pod. `deletion_deadline` is when a requested deletion of the pod should be complete. `lost_at` is when
    muster decided that the process is lost.
    """

    state: ProcessState
    replacement: int = 0
    exit_code: int | None = None
    signal: int | None = None
    started_at: float | None = None
    ended_at: float | None = None
    problem: Problem | None = None
    name: str | None = None
    kube_node: str | None = None
    scheduled_at: float | None = None
    is_terminating: bool = False
    deletion_requested_at: float | None = None
    disruption_announced_at: float | None = None  # the cluster announced that it will end the pod
    grace_seconds: float | None = None
    has_running_sidecars: bool = False
    termination_message: TerminationMessage | None = None
    memory_limit: str = ""
    unreachable_since: float | None = None
    deletion_deadline: float | None = None
    lost_at: float | None = None
    devices: Devices | None = None


@dataclass(frozen=True)
class RankFacts:
    """A rank's report with ages converted to times. `sequence` is the number of the latest report with this rank."""

    report: RankReport
    started_at: float | None = None
    ended_at: float | None = None
    highest_step_at: float | None = None  # when the rank completed its highest step
    last_step_at: float | None = None  # when the rank completed the last step in the latest report
    phase_ended_at: float | None = None  # the end of the rank's last phase without steps
    first_step_at: float | None = None  # when the rank completed its first optimizer step
    trainer_status_at: float | None = None  # when rank 0 sent `report.trainer_status`
    error_at: float | None = None  # when the rank raised `report.error`
    sequence: int = 0

    @property
    def has_exited(self) -> bool:
        """Whether the rank's process has exited, according to the report."""
        return self.report.state == RankState.EXITED

    @property
    def is_failing(self) -> bool:
        """Whether the rank runs although its main thread is over, because nothing has caught its error."""
        error = self.report.error
        return self.report.state == RankState.RUNNING and error is not None and error.uncaught

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
    """The latest report of a node's agent, which arrived at `last_report_at`."""

    report: Report
    last_report_at: float
    ranks: tuple[RankFacts, ...] = ()
    metrics: tuple[MetricFacts, ...] = ()
    launcher: LauncherFacts | None = None
    terminated_at: float | None = None  # something other than the operator stopped the agent
    heartbeat_seconds: float | None = None  # the interval in the answer to the last report


@dataclass(frozen=True)
class NodeFacts:
    """One node of the job."""

    node: int
    name: str  # <job>-<node>
    process: ProcessFacts
    agent: AgentFacts | None = None
    command: Command | None = None  # the last command sent to the agent
    command_sent_at: float | None = None
    attempt_rank: int | None = None  # the node rank in the attempt; None for a job whose node ranks never change

    @property
    def node_rank(self) -> int:
        """The node's position among the members of the attempt."""
        return self.node if self.attempt_rank is None else self.attempt_rank

    @property
    def current_agent(self) -> AgentFacts | None:
        """The agent of the node's current process; None if the last report came from an earlier process."""
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
        return report.phase == AgentPhase.READY and None not in (report.address, report.port) and not report.problem

    @property
    def has_started(self) -> bool:
        """Whether the node has received the start command, or reports a start."""
        agent, command = self.current_agent, self.command
        has_reported = agent is not None and agent.report.attempt > 0
        return has_reported or (command is not None and command.kind == CommandKind.START)

    @property
    def has_ended(self) -> bool:
        """Whether the agent reports that all processes of the attempt have ended."""
        agent = self.current_agent
        return agent is not None and agent.report.phase == AgentPhase.ENDED

    @property
    def has_no_agent(self) -> bool:
        """Whether the node has no agent and muster has to act before an agent can start."""
        return self.process.state in (ProcessState.MISSING, ProcessState.EXITED)

    @property
    def is_scheduled(self) -> bool:
        """Whether the node's pod is scheduled, or its process exists."""
        is_waiting = self.process.state is ProcessState.WAITING
        return self.process.scheduled_at is not None if is_waiting else self.process.state is not ProcessState.MISSING

    @property
    def has_no_report(self) -> bool:
        """Whether the node's process runs but its agent has not reported yet."""
        return self.process.state is ProcessState.RUNNING and self.current_agent is None

    @property
    def is_idle(self) -> bool:
        """Whether no rank runs on the node and muster has to act before a rank can start."""
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

    `complete_facts` keeps the attempt's members in `nodes`, by node rank (see `members.py`), and moves the others to
    `non_members`. `desired_nodes` is `spec.nodes` if the number of members may differ. `heartbeat_seconds` is the
    interval of agents that have received no answer yet. The collector has no report from before `collector_started_at`.
    `refusal` is why the spec creates no node. `surplus_pods` are the names of replaced pods, and of pods beyond the
    job's nodes.
    """

    created_at: float
    nodes: tuple[NodeFacts, ...]
    heartbeat_seconds: float
    stop_request: StopRequest | None = None
    refusal: Problem | None = None
    surplus_pods: tuple[str, ...] = ()
    collector_started_at: float = 0.0
    has_outdated_pods: bool = False  # muster created a pod from an older spec
    problem: Problem | None = None  # a problem of the whole job
    warnings: tuple[str, ...] = ()  # sentences about fields without effect
    restart_request: str | None = None  # the value of the annotation that requests a restart
    requested_source: RequestedSource | None = None  # the edited code that the job's annotation names
    fence_seconds: float = 0.0  # agents without network for this time stop their ranks; 0 if they never do
    non_members: tuple[NodeFacts, ...] = ()
    desired_nodes: int | None = None
    spares: int = 0  # spec.spares
    conflicting_nodes: tuple[int, ...] = ()  # nodes that run another node's ranks, after a user edited the status

    @property
    def all_nodes(self) -> tuple[NodeFacts, ...]:
        """The members of the attempt, then the others."""
        return (*self.nodes, *self.non_members)

    @property
    def is_idle(self) -> bool:
        """Whether no rank of the attempt runs and muster has to act before a rank can start."""
        return all(node.is_idle for node in self.nodes)

    @property
    def has_no_agent(self) -> bool:
        """Whether no node has an agent."""
        return all(node.has_no_agent for node in self.all_nodes)

    @property
    def is_empty(self) -> bool:
        """Whether the job has no pod or process at all, not even an ended one."""
        return not self.surplus_pods and all(node.process.state is ProcessState.MISSING for node in self.all_nodes)

    def get_heartbeat_seconds(self, agent: AgentFacts | None) -> float:
        """Return the interval of the agent's reports. The agent learns a new interval from the answer to a report."""
        agent_seconds = None if agent is None else agent.heartbeat_seconds
        return self.heartbeat_seconds if agent_seconds is None else agent_seconds

    def find_silence_time(self, node: NodeFacts) -> float | None:
        """Return when the node counts as silent if no report arrives; None if no report is expected."""
        agent = node.current_agent
        if agent is None or node.is_idle:
            return None
        return agent.last_report_at + MAX_MISSED_HEARTBEATS * self.get_heartbeat_seconds(agent)

    def is_silent(self, node: NodeFacts, now: float) -> bool:
        """Whether the node's process exists but its agent has stopped reporting."""
        return (at := self.find_silence_time(node)) is not None and now >= at
