"""Merge one more report into the facts about a node's agent. Pure; neither order nor repetition of reports matters.

Within one (replacement, attempt), each part has a rule that doesn't depend on the order: the newest sequence wins, an
end is final, steps only rise, and an event's time is its earliest estimate, because a late report can only make an
event look younger.
"""

import math
from collections.abc import Iterable
from dataclasses import replace

from muster.core.facts import AgentFacts, LauncherFacts, MetricFacts, RankFacts
from muster_worker.contract.schema import LauncherEnd, RankReport, RankState, Report


def merge(agent: AgentFacts | None, report: Report, at: float) -> AgentFacts:
    """The facts after `report` arrived at `at` (Unix seconds): the same reports yield the same facts in any order."""
    return _read(report, at) if agent is None else _join(agent, _read(report, at))


def _read(report: Report, at: float) -> AgentFacts:
    launcher = report.launcher
    return AgentFacts(
        report=report,
        heard_at=at,
        ranks=tuple(_read_rank(rank, report.sequence, at) for rank in sorted(report.ranks, key=_rank_number)),
        metrics=tuple(MetricFacts(value, at - value.age) for value in report.metrics),
        launcher=None if launcher is None else _read_launcher(launcher, report.sequence, at),
        terminated_at=_time(at, report.terminated_age),
    )


def _read_launcher(end: LauncherEnd, sequence: int, at: float) -> LauncherFacts:
    # repeated reports of one end have different ages and one time
    return LauncherFacts(replace(end, age=0.0), at - end.age, sequence)


def _read_rank(rank: RankReport, sequence: int, at: float) -> RankFacts:
    ended_at = at - (rank.ended_age or 0.0) if rank.state == RankState.EXITED else None
    return RankFacts(
        report=rank,
        started_at=_time(at, rank.started_age),
        ended_at=ended_at,
        stepped_at=_time(at, rank.step_age),
        sequence=sequence,
    )


def _time(at: float, age: float | None) -> float | None:
    return None if age is None else at - age


def _join(agent: AgentFacts, news: AgentFacts) -> AgentFacts:
    newer, older = (news, agent) if _is_newer(news.report, agent.report) else (agent, news)
    # reports of a replaced pod, maybe on a disconnected node, say nothing about the new pod
    if newer.report.replacement != older.report.replacement:
        return newer
    heard_at = max(agent.heard_at, news.heard_at)
    if _rank_group(newer.report) != _rank_group(older.report):
        return newer if newer.heard_at == heard_at else replace(newer, heard_at=heard_at)
    return AgentFacts(
        report=newer.report,
        heard_at=heard_at,
        ranks=_join_ranks(newer.ranks, older.ranks),
        metrics=_join_metrics(newer, older),
        launcher=_join_launchers(newer.launcher, older.launcher),
        terminated_at=_earliest(newer.terminated_at, older.terminated_at),
    )


def _rank_group(report: Report) -> tuple[int, int]:
    return (report.replacement, report.attempt)


def _is_newer(one: Report, other: Report) -> bool:
    mine, theirs = (*_rank_group(one), one.sequence), (*_rank_group(other), other.sequence)
    if mine != theirs or one == other:
        return mine > theirs
    # an agent that reuses a number breaks the contract; a fixed choice keeps the result independent of the order
    return repr(one) > repr(other)


def _join_metrics(newer: AgentFacts, older: AgentFacts) -> tuple[MetricFacts, ...]:
    # a value may occur again later, so only identical reports are about the same moment
    if newer.report != older.report:
        return newer.metrics
    pairs = zip(newer.metrics, older.metrics, strict=True)
    return tuple(replace(one, at=min(one.at, other.at)) for one, other in pairs)


def _join_ranks(newer: Iterable[RankFacts], older: Iterable[RankFacts]) -> tuple[RankFacts, ...]:
    joined = {facts.report.rank: facts for facts in older}
    for facts in newer:
        other = joined.get(facts.report.rank)
        joined[facts.report.rank] = facts if other is None else _join_rank(facts, other)
    return tuple(joined[rank] for rank in sorted(joined))


def _join_rank(one: RankFacts, other: RankFacts) -> RankFacts:
    newer, older = (one, other) if _is_newer_rank(one, other) else (other, one)
    ended, stepped = _first_end(newer, older), _farthest(newer, older)
    return RankFacts(
        report=_with_end_and_step(newer.report, ended.report, stepped.report.step),
        started_at=_earliest(newer.started_at, older.started_at),
        ended_at=ended.ended_at,
        stepped_at=stepped.stepped_at,
        sequence=newer.sequence,
    )


def _with_end_and_step(report: RankReport, ended: RankReport, step: int | None) -> RankReport:
    if ended is report and step == report.step:
        return report
    return replace(
        report,
        state=ended.state if ended.state == RankState.EXITED else report.state,
        exit_code=ended.exit_code,
        signal=ended.signal,
        reason=ended.reason,
        stopped=ended.stopped,
        step=step,
    )


def _is_newer_rank(one: RankFacts, other: RankFacts) -> bool:
    if one.sequence != other.sequence:
        return one.sequence > other.sequence
    # a reused number: parts with rules of their own don't count here
    return repr(_with_end_and_step(one.report, _NO_END, None)) >= repr(_with_end_and_step(other.report, _NO_END, None))


_NO_END = RankReport(rank=0, local_rank=0, state=RankState.EXITED)


def _first_end(newer: RankFacts, older: RankFacts) -> RankFacts:
    """The one whose end counts. A rank ends only once: later reports can't change that."""
    if older.ended_at is None:
        return newer
    if newer.ended_at is None:
        return older
    return min(newer, older, key=_end_order)


def _end_order(facts: RankFacts) -> tuple[float, str]:
    rank = facts.report
    return (facts.ended_at or 0.0, repr((rank.exit_code, rank.signal, rank.reason, rank.stopped)))


def _farthest(newer: RankFacts, older: RankFacts) -> RankFacts:
    """The one with the most steps; of two with as many, the one that reached them first."""
    return min(newer, older, key=_step_order)


def _step_order(facts: RankFacts) -> tuple[int, float]:
    step, at = facts.report.step, facts.stepped_at
    return (1 if step is None else -step, math.inf if at is None else at)


def _join_launchers(newer: LauncherFacts | None, older: LauncherFacts | None) -> LauncherFacts | None:
    if newer is None or older is None:
        return newer or older
    latest = max(newer, older, key=lambda facts: (facts.sequence, facts.end.last_lines))
    first = min(newer, older, key=_launcher_order)
    return LauncherFacts(replace(first.end, last_lines=latest.end.last_lines), first.ended_at, latest.sequence)


def _launcher_order(facts: LauncherFacts) -> tuple[float, str]:
    end = facts.end
    return (facts.ended_at, repr((end.name, end.exit_code, end.signal, end.reason, end.stopped)))


def _earliest(one: float | None, other: float | None) -> float | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)


def _rank_number(rank: RankReport) -> int:
    return rank.rank
