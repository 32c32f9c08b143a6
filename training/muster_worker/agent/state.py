"""The agent's state as a value: `apply_event` returns the next state for each event. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Optional, Tuple, Union

from muster_worker.agent.trainer_progress import TrainerProgress, TrainerReport, add_report
from muster_worker.contract.collectives import GroupCollective
from muster_worker.contract.network import Link, NetworkFigures
from muster_worker.contract.schema import MAX_METRICS, AgentPhase, AgentProblem


@dataclass(frozen=True)
class RaisedError:
    """An error of a rank at `at` (monotonic time), and what the rank was doing, if its traceback shows that.

    `is_printed` is set if only the output has it, of a program without the hook or of one that has aborted.
    """

    text: str
    at: float
    is_uncaught: bool = False
    is_printed: bool = False
    activity: Optional[str] = None


@dataclass(frozen=True)
class RankRecord:
    """A rank's start and end. Times are on the node's monotonic clock."""

    rank: int
    local_rank: int
    pid: Optional[int] = None
    started_at: Optional[float] = None
    ended_at: Optional[float] = None
    exit_code: Optional[int] = None
    signal: Optional[int] = None
    reason: Optional[str] = None
    stopped: bool = False
    activity: Optional[str] = None
    collectives: Tuple[GroupCollective, ...] = ()
    error: Optional[RaisedError] = None


@dataclass(frozen=True)
class LauncherRecord:
    """How the launcher ended."""

    name: str
    at: float
    exit_code: Optional[int] = None
    signal: Optional[int] = None
    reason: Optional[str] = None


@dataclass(frozen=True)
class MetricRecord:
    """The latest value of a metric."""

    name: str
    value: float
    rank: int
    at: float


@dataclass(frozen=True)
class NodeState:
    """The state of the node's attempt, without the observations that `reports` adds to each report."""

    job_uid: str
    node: int
    replacement: int
    attempt: int = 0
    began_at: float = 0.0  # the start of the attempt; its events are later
    phase: str = AgentPhase.READY
    address: Optional[str] = None
    port: Optional[int] = None
    check_port: Optional[int] = None
    ping_port: Optional[int] = None
    fence_seconds: float = 0.0
    interface: Optional[str] = None
    interface_why: Optional[str] = None
    speed_mbps: int = 0
    links: Tuple[Link, ...] = ()
    network_warning: Optional[str] = None  # a limit that slows down every network interface
    figures: Optional[NetworkFigures] = None
    ranks: Tuple[RankRecord, ...] = ()
    launcher: Optional[LauncherRecord] = None
    metrics: Tuple[MetricRecord, ...] = ()
    trainer: Optional[TrainerProgress] = None  # of rank 0
    stop_began_at: Optional[float] = None
    stop_call: Optional[int] = None
    terminated_at: Optional[float] = None
    problem: Optional[AgentProblem] = None


@dataclass(frozen=True)
class RankStarted:
    """A rank's command runs as `pid`. A second such event means that a child of the command is the rank."""

    rank: int
    pid: int
    at: float


@dataclass(frozen=True)
class RankEnded:
    """A rank's process has ended, or could not be started (`reason`)."""

    rank: int
    at: float
    exit_code: Optional[int] = None
    signal: Optional[int] = None
    reason: Optional[str] = None


@dataclass(frozen=True)
class ActivityFound:
    """The activity of a rank's main thread when the node was stopped or the rank failed."""

    rank: int
    activity: str


@dataclass(frozen=True)
class ActivityChanged:
    """The activity and the last collectives of a rank that completes no step. Both are empty after its next step."""

    rank: int
    activity: Optional[str]
    collectives: Tuple[GroupCollective, ...] = ()


@dataclass(frozen=True)
class ErrorSeen:
    """A rank's last error. What the rank's Python hook records replaces what the rank has printed."""

    rank: int
    error: RaisedError


@dataclass(frozen=True)
class StopBegan:
    """The agent is about to send the first signal to the node's ranks."""

    at: float


@dataclass(frozen=True)
class StopCallChosen:
    """A graceful stop has begun. The ranks can stop at this call of `muster_worker.stopping`; 0: they got SIGTERM."""

    call: int


@dataclass(frozen=True)
class AgentTerminated:
    """The agent stops because of a signal or its parent's exit, not because of a command."""

    at: float


@dataclass(frozen=True)
class PhaseReached:
    """The agent's phase changes."""

    phase: str


@dataclass(frozen=True)
class NetworkMeasured:
    """The network check is over."""

    figures: NetworkFigures


@dataclass(frozen=True)
class ProblemFound:
    """A problem that the job's owner has to see. The state keeps the first one."""

    problem: AgentProblem


Event = Union[
    RankStarted,
    RankEnded,
    ActivityFound,
    ActivityChanged,
    ErrorSeen,
    LauncherRecord,
    MetricRecord,
    TrainerReport,
    StopBegan,
    StopCallChosen,
    AgentTerminated,
    PhaseReached,
    NetworkMeasured,
    ProblemFound,
]


def begin_attempt(state: NodeState, attempt: int, first_rank: int, procs: int, at: float) -> NodeState:
    """Return the state at the start of an attempt, with a record for each rank."""
    ranks = tuple(RankRecord(first_rank + local_rank, local_rank) for local_rank in range(procs))
    return replace(
        state,
        attempt=attempt,
        began_at=at,
        phase=AgentPhase.RUNNING,
        ranks=ranks,
        figures=None,
        launcher=None,
        metrics=(),
        trainer=None,
        stop_began_at=None,
        stop_call=None,
        problem=None,
    )


def apply_event(state: NodeState, event: Event) -> NodeState:
    """Return the state after an event. Events for ranks of other nodes, or after a rank's end, change nothing."""
    if isinstance(event, PhaseReached):
        return replace(state, phase=event.phase)
    if isinstance(event, NetworkMeasured):
        return replace(state, figures=event.figures)
    if isinstance(event, ProblemFound):
        return state if state.problem else replace(state, problem=event.problem)
    if isinstance(event, (StopBegan, StopCallChosen, AgentTerminated, LauncherRecord)):
        return _apply_once(state, event)
    if isinstance(event, (MetricRecord, TrainerReport)):
        return _apply_value(state, event)
    return replace(
        state,
        ranks=tuple(
            _apply_to_rank(record, event, state.stop_began_at) if record.rank == event.rank else record
            for record in state.ranks
        ),
    )


def _apply_once(
    state: NodeState, event: Union[StopBegan, StopCallChosen, AgentTerminated, LauncherRecord]
) -> NodeState:
    """Apply an event, unless the state already has one of its kind."""
    if isinstance(event, StopBegan):
        return state if state.stop_began_at is not None else replace(state, stop_began_at=event.at)
    if isinstance(event, StopCallChosen):
        return state if state.stop_call is not None else replace(state, stop_call=event.call)
    if isinstance(event, AgentTerminated):
        return state if state.terminated_at is not None else replace(state, terminated_at=event.at)
    return state if state.launcher is not None else replace(state, launcher=event)


def _apply_value(state: NodeState, event: Union[MetricRecord, TrainerReport]) -> NodeState:
    if isinstance(event, TrainerReport):
        return replace(state, trainer=add_report(state.trainer, event))
    return replace(state, metrics=_set_metric(state.metrics, event))


def _set_metric(current: Tuple[MetricRecord, ...], record: MetricRecord) -> Tuple[MetricRecord, ...]:
    other_metrics = tuple(metric for metric in current if metric.name != record.name)
    # The collector rejects a report with more than MAX_METRICS metrics.
    return (
        current
        if len(other_metrics) >= MAX_METRICS
        else tuple(sorted((*other_metrics, record), key=lambda metric: metric.name))
    )


def _apply_to_rank(
    record: RankRecord,
    event: Union[RankStarted, RankEnded, ActivityFound, ActivityChanged, ErrorSeen],
    stop_began_at: Optional[float],
) -> RankRecord:
    if isinstance(event, ActivityFound):
        return record if record.activity else replace(record, activity=event.activity)
    if isinstance(event, ErrorSeen):
        is_known = event.error.is_printed and record.error is not None and not record.error.is_printed
        return record if is_known else replace(record, error=event.error)
    if record.ended_at is not None:
        return record
    if isinstance(event, ActivityChanged):
        return replace(record, activity=event.activity, collectives=event.collectives)
    if isinstance(event, RankStarted):
        # A second RankStarted means that a child of the command is the rank: keep the start time.
        started_at = event.at if record.started_at is None else record.started_at
        return replace(record, pid=event.pid, started_at=started_at)
    return replace(
        record,
        ended_at=event.at,
        exit_code=event.exit_code,
        signal=event.signal,
        reason=event.reason,
        # Compare times: events may arrive in another order.
        stopped=stop_began_at is not None and event.at >= stop_began_at,
    )
