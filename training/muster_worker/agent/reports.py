"""The report of a node: its state and the observations of its ranks. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Mapping, Optional, Tuple

from muster_worker.agent.state import NodeState, RaisedError, RankRecord
from muster_worker.agent.trainer_progress import build_trainer_status
from muster_worker.contract import wire
from muster_worker.contract.error_text import RankError
from muster_worker.contract.schema import LauncherEnd, MetricValue, RankReport, RankState, Report

MAX_PRINTED_SECONDS = 120.0
"""A printed error ends its rank within this time, with atexit functions that upload files. An older one was handled."""


@dataclass(frozen=True)
class Observation:
    """Values that the agent reads from a rank for each report."""

    last_lines: Tuple[str, ...] = ()
    step: Optional[int] = None
    stepped_at: Optional[float] = None
    first_stepped_at: Optional[float] = None
    first_script_step: Optional[int] = None
    no_step_reason: Optional[str] = None
    phase: Optional[str] = None
    phase_ended_at: Optional[float] = None
    rss_bytes: Optional[int] = None
    busy_seconds: Optional[float] = None
    total_steps: Optional[int] = None
    mean_steps_per_second: Optional[float] = None


NO_OBSERVATION = Observation()

MAX_INTERFACE_REASON_CHARS = 256
"""The collector rejects longer reasons for an interface."""


@dataclass(frozen=True)
class Snapshot:
    """The node at one moment: the content of a report without its sequence number and send time."""

    state: NodeState
    observations: Mapping[int, Observation]
    launcher_lines: Tuple[str, ...] = ()
    dropped_lines: int = 0


def _describe_interface(state: NodeState) -> Optional[str]:
    if state.interface_why is None or state.network_warning is None:
        return state.interface_why
    return f"{state.interface_why}; {state.network_warning}"[:MAX_INTERFACE_REASON_CHARS]


def make_report(snapshot: Snapshot, sequence: int, now: float) -> Report:
    """Make the report of a snapshot for sending at `now`."""
    state = snapshot.state
    max_age = max(0.0, now - state.began_at)
    return Report(
        job_uid=state.job_uid,
        node=state.node,
        replacement=state.replacement,
        attempt=state.attempt,
        sequence=sequence,
        phase=state.phase,
        address=state.address,
        port=state.port,
        check_port=state.check_port,
        ping_port=state.ping_port,
        fence_seconds=state.fence_seconds,
        interface=state.interface,
        interface_why=_describe_interface(state),
        speed_mbps=state.speed_mbps,
        links=state.links,
        figures=state.figures,
        ranks=tuple(
            _build_rank_report(state, record, snapshot.observations.get(record.rank, NO_OBSERVATION), now)
            for record in state.ranks
        ),
        metrics=tuple(
            MetricValue(metric.name, metric.value, metric.rank, _compute_bounded_age(metric.at, now, max_age))
            for metric in state.metrics
        ),
        launcher=_build_launcher_end(state, snapshot.launcher_lines, now),
        problem=state.problem,
        terminated_age=None if state.terminated_at is None else max(0.0, now - state.terminated_at),
        stop_call=state.stop_call,
        dropped_lines=snapshot.dropped_lines,
    )


def encode_report(report: Report) -> bytes:
    """Encode the report. If it is too large, drop the oldest lines of each rank."""
    body = wire.encode(report)
    max_lines = max((len(rank.last_lines) for rank in report.ranks), default=0)
    while len(body) > wire.compute_max_report_bytes(len(report.ranks)) and max_lines > 0:
        max_lines -= 1
        shorter = tuple(
            replace(rank, last_lines=rank.last_lines[len(rank.last_lines) - min(max_lines, len(rank.last_lines)) :])
            for rank in report.ranks
        )
        body = wire.encode(replace(report, ranks=shorter))
    return body


def _build_rank_report(state: NodeState, record: RankRecord, observation: Observation, now: float) -> RankReport:
    max_age = max(0.0, now - state.began_at)
    error = _find_own_error(state, record, observation, now)
    return RankReport(
        rank=record.rank,
        local_rank=record.local_rank,
        state=_find_rank_state(record),
        pid=record.pid,
        exit_code=record.exit_code,
        signal=record.signal,
        started_age=_compute_optional_age(record.started_at, now, max_age),
        ended_age=_compute_optional_age(record.ended_at, now, max_age),
        stopped=record.stopped,
        reason=record.reason,
        last_lines=observation.last_lines,
        step=observation.step,
        step_age=_compute_optional_age(observation.stepped_at, now, max_age),
        first_step_age=_compute_optional_age(observation.first_stepped_at, now, max_age),
        first_script_step=observation.first_script_step,
        no_step_reason=observation.no_step_reason,
        activity=record.activity if error is None or error.activity is None else error.activity,
        collectives=record.collectives,
        rss_bytes=observation.rss_bytes,
        phase=observation.phase,
        phase_ended_age=_compute_optional_age(observation.phase_ended_at, now, max_age),
        busy_seconds=observation.busy_seconds,
        total_steps=observation.total_steps,
        mean_steps_per_second=observation.mean_steps_per_second,
        trainer_status=build_trainer_status(state.trainer, now, max_age) if record.rank == 0 else None,
        error=None if error is None else _build_error(error, now, max_age),
    )


def _build_error(error: RaisedError, now: float, max_age: float) -> RankError:
    return RankError(
        error.text, _compute_bounded_age(error.at, now, max_age), uncaught=error.is_uncaught, printed=error.is_printed
    )


def _find_own_error(
    state: NodeState, record: RankRecord, observation: Observation, now: float
) -> Optional[RaisedError]:
    """Return the error that may have ended the rank; None if the rank has handled it, or if it follows from a stop."""
    error, stopped_at = record.error, state.stop_began_at
    has_succeeded = record.exit_code == 0 and not record.stopped
    if error is None or has_succeeded or (stopped_at is not None and error.at >= stopped_at):
        return None
    if observation.stepped_at is not None and observation.stepped_at > error.at:
        return None
    ended_at = now if record.ended_at is None else record.ended_at
    return None if error.is_printed and ended_at - error.at > MAX_PRINTED_SECONDS else error


def _find_rank_state(record: RankRecord) -> str:
    if record.ended_at is not None:
        return RankState.EXITED
    return RankState.STARTING if record.started_at is None else RankState.RUNNING


def _build_launcher_end(state: NodeState, lines: Tuple[str, ...], now: float) -> Optional[LauncherEnd]:
    record = state.launcher
    if record is None:
        return None
    return LauncherEnd(
        record.name,
        max(0.0, now - record.at),
        record.exit_code,
        record.signal,
        record.reason,
        lines,
        stopped=state.stop_began_at is not None and record.at >= state.stop_began_at,
    )


def _compute_optional_age(at: Optional[float], now: float, max_age: float) -> Optional[float]:
    return None if at is None else _compute_bounded_age(at, now, max_age)


def _compute_bounded_age(at: float, now: float, max_age: float) -> float:
    # A rank may send a wrong time, and the collector rejects a report with an impossible age.
    return min(max(0.0, now - at), max_age)
