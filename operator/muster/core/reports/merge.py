"""Merge a report into the facts about a node's agent. Neither the order nor the repetition of reports matters.

Each part of the reports of one attempt has a merge rule that doesn't depend on their order. The report with the highest
sequence number wins. An end is final. The highest step wins, but a step that the script reported wins over a count of
optimizer steps, even over a higher one. The time of an event is the earliest estimate, because a delayed report makes
an event seem later.
"""

import math
from collections.abc import Iterable
from dataclasses import replace

from muster.core.facts import AgentFacts, LauncherFacts, MetricFacts, RankFacts
from muster.core.reports.check import JobShape
from muster_worker.contract.schema import LauncherEnd, RankReport, RankState, Report


def merge_report(agent: AgentFacts | None, report: Report, at: float) -> AgentFacts:
    """Return the facts after `report` arrived at `at` (Unix seconds)."""
    return _build_agent_facts(report, at) if agent is None else _merge_facts(agent, _build_agent_facts(report, at))


def drop_ranks_of_other_nodes(agent: AgentFacts, report: Report, shape: JobShape) -> AgentFacts:
    """Return the facts before `report` without the ranks of another node rank.

    In an attempt, a node has one node rank. A report adds its ranks to those of earlier reports of the attempt. So a
    pod that reported one node rank after the other could store the ranks of the whole job.
    """
    if shape.has_fixed_ranks or not report.ranks or report.attempt != agent.report.attempt:
        return agent
    node_ranks = shape.list_node_ranks(report)
    own_ranks = tuple(rank for rank in agent.ranks if rank.report.rank in node_ranks)
    return agent if len(own_ranks) == len(agent.ranks) else replace(agent, ranks=own_ranks)


def _build_agent_facts(report: Report, at: float) -> AgentFacts:
    launcher = report.launcher
    return AgentFacts(
        report=report,
        last_report_at=at,
        ranks=tuple(_read_rank(rank, report.sequence, at) for rank in sorted(report.ranks, key=_get_rank_number)),
        metrics=tuple(MetricFacts(value, at - value.age) for value in report.metrics),
        launcher=None if launcher is None else _read_launcher(launcher, report.sequence, at),
        terminated_at=_convert_age(at, report.terminated_age),
    )


def _read_launcher(end: LauncherEnd, sequence: int, at: float) -> LauncherFacts:
    # Repeated reports of one end have different ages but the same time.
    return LauncherFacts(replace(end, age=0.0), at - end.age, sequence)


def _read_rank(rank: RankReport, sequence: int, at: float) -> RankFacts:
    ended_at = at - (rank.ended_age or 0.0) if rank.state == RankState.EXITED else None
    return RankFacts(
        report=rank,
        started_at=_convert_age(at, rank.started_age),
        ended_at=ended_at,
        highest_step_at=_convert_age(at, rank.step_age),
        last_step_at=_convert_age(at, rank.step_age),
        phase_ended_at=_convert_age(at, rank.phase_ended_age),
        first_step_at=_convert_age(at, rank.first_step_age),
        trainer_status_at=None if rank.trainer_status is None else at - rank.trainer_status.age,
        error_at=None if rank.error is None else at - rank.error.age,
        sequence=sequence,
    )


def _convert_age(at: float, age: float | None) -> float | None:
    return None if age is None else at - age


def _merge_facts(agent: AgentFacts, update: AgentFacts) -> AgentFacts:
    newer, older = (update, agent) if _is_newer(update.report, agent.report) else (agent, update)
    # Ignore reports of a replaced pod, which may still run on a disconnected node.
    if newer.report.replacement != older.report.replacement:
        return newer
    last_report_at = max(agent.last_report_at, update.last_report_at)
    if _get_attempt_key(newer.report) != _get_attempt_key(older.report):
        return newer if newer.last_report_at == last_report_at else replace(newer, last_report_at=last_report_at)
    return AgentFacts(
        report=newer.report,
        last_report_at=last_report_at,
        ranks=_merge_ranks(newer.ranks, older.ranks),
        metrics=_merge_metrics(newer, older),
        launcher=_merge_launchers(newer.launcher, older.launcher),
        terminated_at=_select_earliest(newer.terminated_at, older.terminated_at),
    )


def _get_attempt_key(report: Report) -> tuple[int, int]:
    return (report.replacement, report.attempt)


def _is_newer(one: Report, other: Report) -> bool:
    order, other_order = (*_get_attempt_key(one), one.sequence), (*_get_attempt_key(other), other.sequence)
    if order != other_order or one == other:
        return order > other_order
    # The agent reused a sequence number, which breaks the contract. This choice doesn't depend on the order.
    return repr(one) > repr(other)


def _merge_metrics(newer: AgentFacts, older: AgentFacts) -> tuple[MetricFacts, ...]:
    # Only identical reports are copies of one message, and the copy that arrived first shows the best time. A different
    # report with an equal value may contain a later measurement.
    if newer.report != older.report:
        return newer.metrics
    pairs = zip(newer.metrics, older.metrics, strict=True)
    return tuple(replace(one, at=min(one.at, other.at)) for one, other in pairs)


def _merge_ranks(newer: Iterable[RankFacts], older: Iterable[RankFacts]) -> tuple[RankFacts, ...]:
    ranks = {facts.report.rank: facts for facts in older}
    for facts in newer:
        other = ranks.get(facts.report.rank)
        ranks[facts.report.rank] = facts if other is None else _merge_rank(facts, other)
    return tuple(ranks[rank] for rank in sorted(ranks))


def _merge_rank(one: RankFacts, other: RankFacts) -> RankFacts:
    newer, older = (one, other) if _is_newer_rank(one, other) else (other, one)
    end_source, step_source = _select_first_end(newer, older), _select_most_steps(newer, older)
    return RankFacts(
        report=_replace_end_and_step(newer.report, end_source.report, step_source.report),
        started_at=_select_earliest(newer.started_at, older.started_at),
        ended_at=end_source.ended_at,
        highest_step_at=step_source.highest_step_at,
        last_step_at=_select_latest_estimate(newer, older, newer.last_step_at, older.last_step_at),
        phase_ended_at=_select_latest_estimate(newer, older, newer.phase_ended_at, older.phase_ended_at),
        first_step_at=_select_earliest(newer.first_step_at, older.first_step_at),
        trainer_status_at=_select_latest_estimate(newer, older, newer.trainer_status_at, older.trainer_status_at),
        error_at=_select_latest_estimate(newer, older, newer.error_at, older.error_at),
        sequence=newer.sequence,
    )


def _select_latest_estimate(
    newer: RankFacts, older: RankFacts, value: float | None, earlier: float | None
) -> float | None:
    """Return the time in the newer report, or the earliest time if both are the same report."""
    return value if newer.sequence != older.sequence else _select_earliest(value, earlier)


def _replace_end_and_step(report: RankReport, end_source: RankReport, step_source: RankReport) -> RankReport:
    if end_source is report and step_source is report:
        return report
    return replace(
        report,
        state=end_source.state if end_source.state == RankState.EXITED else report.state,
        exit_code=end_source.exit_code,
        signal=end_source.signal,
        reason=end_source.reason,
        stopped=end_source.stopped,
        step=step_source.step,
        first_script_step=step_source.first_script_step,
    )


def _is_newer_rank(one: RankFacts, other: RankFacts) -> bool:
    if one.sequence != other.sequence:
        return one.sequence > other.sequence
    # The agent reused the sequence number. Compare only the fields without a merge rule.
    return repr(_replace_end_and_step(one.report, _BLANK_REPORT, _BLANK_REPORT)) >= repr(
        _replace_end_and_step(other.report, _BLANK_REPORT, _BLANK_REPORT)
    )


_BLANK_REPORT = RankReport(rank=0, local_rank=0, state=RankState.EXITED)
"""A report with which `_replace_end_and_step` makes the ends and the steps of two reports equal."""


def _select_first_end(newer: RankFacts, older: RankFacts) -> RankFacts:
    """Return the facts with the valid end. A rank ends only once, and later reports can't change its end."""
    if older.ended_at is None:
        return newer
    if newer.ended_at is None:
        return older
    return min(newer, older, key=_get_end_order)


def _get_end_order(facts: RankFacts) -> tuple[float, str]:
    rank = facts.report
    return (facts.ended_at or 0.0, repr((rank.exit_code, rank.signal, rank.reason, rank.stopped)))


def _select_most_steps(newer: RankFacts, older: RankFacts) -> RankFacts:
    """Return the facts with the most steps, or of equal steps the facts with the earliest time.

    A step that the script reported replaces a count of optimizer steps, even a higher one.
    """
    return min(newer, older, key=_get_step_order)


def _get_step_order(facts: RankFacts) -> tuple[int, int, float, int]:
    report, at = facts.report, facts.highest_step_at
    step, first = report.step, report.first_script_step
    return (
        1 if first is None else 0,
        1 if step is None else -step,
        math.inf if at is None else at,
        0 if first is None else first,
    )


def _merge_launchers(newer: LauncherFacts | None, older: LauncherFacts | None) -> LauncherFacts | None:
    if newer is None or older is None:
        return newer or older
    latest = max(newer, older, key=lambda facts: (facts.sequence, facts.end.last_lines))
    first = min(newer, older, key=_get_launcher_order)
    return LauncherFacts(replace(first.end, last_lines=latest.end.last_lines), first.ended_at, latest.sequence)


def _get_launcher_order(facts: LauncherFacts) -> tuple[float, str]:
    end = facts.end
    return (facts.ended_at, repr((end.name, end.exit_code, end.signal, end.reason, end.stopped)))


def _select_earliest(one: float | None, other: float | None) -> float | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)


def _get_rank_number(rank: RankReport) -> int:
    return rank.rank
