"""What is known of a job at one moment: the only input of a decision besides the job itself and the time.

Backends build these in `observe`; the plan and the status read them. Times are Unix seconds on the operator's clock.
"""

from dataclasses import dataclass
from enum import StrEnum

from muster_worker.contract.schema import AgentProblem, Command, LauncherEnd, MetricValue, RankReport, Report


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
