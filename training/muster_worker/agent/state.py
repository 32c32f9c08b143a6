"""What an agent knows of its node, as a value: events go in, the next state comes out. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Optional, Tuple, Union

from muster_worker.contract.schema import MAX_METRICS, AgentPhase, AgentProblem, Link, NetworkFigures
from muster_worker.exit_codes import STOPPED_EXIT_CODE


@dataclass(frozen=True)
class RankRecord:
    """A rank's life so far. Times are the node's monotonic clock."""

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
    """All that is known of the node's attempt, but for what is read when a report is made (`reports`)."""

    job_uid: str
    node: int
    replacement: int
    attempt: int = 0
    began_at: float = 0.0  # the attempt: nothing of it can be older
    phase: str = AgentPhase.READY
    address: Optional[str] = None
    port: Optional[int] = None
    check_port: Optional[int] = None
    interface: Optional[str] = None
    interface_why: Optional[str] = None
    speed_mbps: int = 0
    links: Tuple[Link, ...] = ()
    network_objection: Optional[str] = None  # what speaks against the network, wherever the nodes meet
    figures: Optional[NetworkFigures] = None
    ranks: Tuple[RankRecord, ...] = ()
    launcher: Optional[LauncherRecord] = None
    metrics: Tuple[MetricRecord, ...] = ()
    stop_began_at: Optional[float] = None
    terminated_at: Optional[float] = None
    problem: Optional[AgentProblem] = None


@dataclass(frozen=True)
class RankStarted:
    """A rank's command runs as `pid`; again when a process inside turns out to be the rank itself."""

    rank: int
    pid: int
    at: float


@dataclass(frozen=True)
class RankEnded:
    """A rank's process is gone, or never came to be (`reason`)."""

    rank: int
    at: float
    exit_code: Optional[int] = None
    signal: Optional[int] = None
    reason: Optional[str] = None


@dataclass(frozen=True)
class ActivityFound:
    """What a rank's main thread was in when the node was stopped or the rank fell."""

    rank: int
    activity: str


@dataclass(frozen=True)
class StopBegan:
    """The first signal is about to be sent to the node's ranks."""

    at: float


@dataclass(frozen=True)
class Terminated:
    """Somebody other than the operator makes the agent stop."""

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
    """Something that the job's owner has to know; the first one stays."""

    problem: AgentProblem


Event = Union[
    RankStarted,
    RankEnded,
    ActivityFound,
    LauncherRecord,
    MetricRecord,
    StopBegan,
    Terminated,
    PhaseReached,
    NetworkMeasured,
    ProblemFound,
]


def begin(state: NodeState, attempt: int, first_rank: int, procs: int, at: float) -> NodeState:
    """A new attempt: its ranks are expected, nothing of the last one is left."""
    ranks = tuple(RankRecord(first_rank + local, local) for local in range(procs))
    return replace(
        state,
        attempt=attempt,
        began_at=at,
        phase=AgentPhase.RUNNING,
        ranks=ranks,
        figures=None,
        launcher=None,
        metrics=(),
        stop_began_at=None,
        problem=None,
    )


def apply(state: NodeState, event: Event) -> NodeState:
    """The state after an event. What is told of a rank of another node, or after its end, changes nothing."""
    if isinstance(event, PhaseReached):
        return replace(state, phase=event.phase)
    if isinstance(event, NetworkMeasured):
        return replace(state, figures=event.figures)
    if isinstance(event, ProblemFound):
        return state if state.problem else replace(state, problem=event.problem)
    if isinstance(event, (StopBegan, Terminated, LauncherRecord)):
        return _apply_once(state, event)
    if isinstance(event, MetricRecord):
        return replace(state, metrics=_with_metric(state.metrics, event))
    return replace(
        state,
        ranks=tuple(
            _apply_to_rank(record, event, state.stop_began_at) if record.rank == event.rank else record
            for record in state.ranks
        ),
    )


def _apply_once(state: NodeState, event: Union[StopBegan, Terminated, LauncherRecord]) -> NodeState:
    """What happens once: the first one stays."""
    if isinstance(event, StopBegan):
        return state if state.stop_began_at is not None else replace(state, stop_began_at=event.at)
    if isinstance(event, Terminated):
        return state if state.terminated_at is not None else replace(state, terminated_at=event.at)
    return state if state.launcher is not None else replace(state, launcher=event)


def _with_metric(current: Tuple[MetricRecord, ...], news: MetricRecord) -> Tuple[MetricRecord, ...]:
    others = tuple(metric for metric in current if metric.name != news.name)
    # a report with more would be refused, and the node not heard any more
    return current if len(others) >= MAX_METRICS else tuple(sorted((*others, news), key=lambda metric: metric.name))


def _apply_to_rank(
    record: RankRecord, event: Union[RankStarted, RankEnded, ActivityFound], stop_began_at: Optional[float]
) -> RankRecord:
    if isinstance(event, ActivityFound):
        return record if record.activity else replace(record, activity=event.activity)
    if record.ended_at is not None:
        return record
    if isinstance(event, RankStarted):
        # a rank that a process inside took over has not started twice
        started_at = event.at if record.started_at is None else record.started_at
        return replace(record, pid=event.pid, started_at=started_at)
    return replace(
        record,
        ended_at=event.at,
        exit_code=event.exit_code,
        signal=event.signal,
        reason=event.reason,
        # only who fell after the first signal was stopped: the clock decides, not the order of the news
        stopped=stop_began_at is not None and event.at >= stop_began_at,
    )


def exit_code(state: NodeState) -> int:
    """The agent's own: 0 only when all ranks came to their own good end.

    Else `STOPPED_EXIT_CODE` after a signal, the first failed rank's as a shell tells it, the launcher's, 1.
    """
    finished = bool(state.ranks) and all(record.ended_at is not None and not record.stopped for record in state.ranks)
    # what had ended before the signal came ended as it did
    if state.terminated_at is not None and not finished:
        return STOPPED_EXIT_CODE
    failed = [record for record in state.ranks if record.ended_at is not None and record.exit_code != 0]
    if failed:
        first = min(failed, key=lambda record: (record.stopped, record.ended_at or 0.0, record.rank))
        return shell_code(first.exit_code, first.signal)
    if state.launcher is not None and state.launcher.exit_code != 0:
        return shell_code(state.launcher.exit_code, state.launcher.signal)
    return 0 if finished and state.problem is None else 1


def shell_code(code: Optional[int], number: Optional[int]) -> int:
    """128 + the signal's number, as shells do; 1 when nothing is known."""
    if number is not None:
        return 128 + number
    return 1 if code is None else code
