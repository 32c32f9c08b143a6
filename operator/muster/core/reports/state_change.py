"""Decide whether a report changes more than progress. Only such a report reconciles the job at once."""

from muster.core.facts import AgentFacts
from muster_worker.contract.schema import RankReport, RankState, Report


def has_state_changed(before: AgentFacts | None, after: AgentFacts, max_gap_seconds: float) -> bool:
    """Whether `after` differs in more than steps, metrics, memory and times of the running ranks.

    A report after a gap of more than `max_gap_seconds` may end the silence of a node, which the status shows.
    """
    if before is None or after.last_report_at - before.last_report_at > max_gap_seconds:
        return True
    if _get_node_state(before.report) != _get_node_state(after.report):
        return True
    if before.launcher != after.launcher or (before.terminated_at is None) != (after.terminated_at is None):
        return True
    if len(before.ranks) != len(after.ranks):
        return True
    return any(
        one.report is not other.report and _get_rank_state(one.report) != _get_rank_state(other.report)
        for one, other in zip(before.ranks, after.ranks, strict=True)
    )


def _get_node_state(report: Report) -> tuple[object, ...]:
    return (
        *(report.replacement, report.attempt, report.phase, report.problem, report.stop_call, report.fence_seconds),
        *(report.address, report.port, report.check_port, report.ping_port),
        *(report.interface, report.interface_why, report.speed_mbps, report.links, report.figures),
    )


def _get_rank_state(rank: RankReport) -> tuple[object, ...]:
    # The output of a running rank has no effect. That of an ended rank may name another root cause.
    lines = rank.last_lines if rank.state == RankState.EXITED else ()
    error = rank.error and (rank.error.text, rank.error.uncaught)
    return (
        *(rank.rank, rank.state, rank.pid, rank.exit_code, rank.signal, rank.stopped, rank.reason),
        *(rank.activity, rank.collectives, rank.no_step_reason, lines, error),
    )
