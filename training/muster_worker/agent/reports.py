"""The report of a node: its state and what is read of its ranks at the moment of the report. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Mapping, Optional, Tuple

from muster_worker.agent.state import NodeState, RankRecord
from muster_worker.contract import wire
from muster_worker.contract.schema import LauncherEnd, MetricValue, RankReport, RankState, Report


@dataclass(frozen=True)
class Observation:
    """What is read of a rank when a report is made."""

    last_lines: Tuple[str, ...] = ()
    step: Optional[int] = None
    stepped_at: Optional[float] = None
    no_step_reason: Optional[str] = None
    rss_bytes: Optional[int] = None


NOTHING_SEEN = Observation()

MAX_WHY_CHARS = 256
"""The longest word about an interface that the collector takes."""


@dataclass(frozen=True)
class Snapshot:
    """The node at one moment: all that a report is made of, but for its number and the time of sending."""

    state: NodeState
    observations: Mapping[int, Observation]
    launcher_lines: Tuple[str, ...] = ()
    dropped_lines: int = 0


def _why(state: NodeState) -> Optional[str]:
    if state.interface_why is None or state.network_objection is None:
        return state.interface_why
    return f"{state.interface_why}; {state.network_objection}"[:MAX_WHY_CHARS]


def make_report(snapshot: Snapshot, sequence: int, now: float) -> Report:
    """The report of a snapshot, sent at `now`."""
    state = snapshot.state
    past = max(0.0, now - state.began_at)
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
        interface=state.interface,
        interface_why=_why(state),
        speed_mbps=state.speed_mbps,
        links=state.links,
        figures=state.figures,
        ranks=tuple(
            _rank_report(record, snapshot.observations.get(record.rank, NOTHING_SEEN), now, past)
            for record in state.ranks
        ),
        metrics=tuple(
            MetricValue(metric.name, metric.value, metric.rank, _age_of(metric.at, now, past))
            for metric in state.metrics
        ),
        launcher=_launcher_end(state, snapshot.launcher_lines, now),
        problem=state.problem,
        terminated_age=None if state.terminated_at is None else max(0.0, now - state.terminated_at),
        dropped_lines=snapshot.dropped_lines,
    )


def encode_report(report: Report) -> bytes:
    """The report as the collector takes it: when it is too large, ranks' oldest lines go first."""
    body = wire.encode(report)
    keep = max((len(rank.last_lines) for rank in report.ranks), default=0)
    while len(body) > wire.max_report_bytes(len(report.ranks)) and keep > 0:
        keep -= 1
        shorter = tuple(
            replace(rank, last_lines=rank.last_lines[len(rank.last_lines) - min(keep, len(rank.last_lines)) :])
            for rank in report.ranks
        )
        body = wire.encode(replace(report, ranks=shorter))
    return body


def _rank_report(record: RankRecord, observation: Observation, now: float, past: float) -> RankReport:
    return RankReport(
        rank=record.rank,
        local_rank=record.local_rank,
        state=_rank_state(record),
        pid=record.pid,
        exit_code=record.exit_code,
        signal=record.signal,
        started_age=_age(record.started_at, now, past),
        ended_age=_age(record.ended_at, now, past),
        stopped=record.stopped,
        reason=record.reason,
        last_lines=observation.last_lines,
        step=observation.step,
        step_age=_age(observation.stepped_at, now, past),
        no_step_reason=observation.no_step_reason,
        activity=record.activity,
        rss_bytes=observation.rss_bytes,
    )


def _rank_state(record: RankRecord) -> str:
    if record.ended_at is not None:
        return RankState.EXITED
    return RankState.STARTING if record.started_at is None else RankState.RUNNING


def _launcher_end(state: NodeState, lines: Tuple[str, ...], now: float) -> Optional[LauncherEnd]:
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


def _age(at: Optional[float], now: float, past: float) -> Optional[float]:
    return None if at is None else _age_of(at, now, past)


def _age_of(at: float, now: float, past: float) -> float:
    # a rank's word for when something was may be anything; what can't be true would cost the whole node its voice
    return min(max(0.0, now - at), past)
