"""The ranks with a problem or another notable state, first failure first."""

from muster.api.status.status import RankDetail
from muster.api.timestamps import format_milliseconds
from muster.core.failure import rank_output
from muster.core.judge import Outcome
from muster.core.status.views import (
    FAILED,
    NOT_REPORTED,
    PENDING,
    RUNNING,
    STARTING,
    STOPPED,
    SUCCEEDED,
    UNKNOWN,
    RankView,
)

MAX_DETAILS = 16
"""The limit keeps the status small, even with 100,000 ranks."""


_MESSAGES = {
    "NodeSilent": "its agent no longer reports",
    "NotHeard": "its agent has not reported since the operator started",
}


def rank_details(views: tuple[RankView, ...], outcome: Outcome) -> tuple[RankDetail, ...]:
    """At most `MAX_DETAILS` ranks: root causes, ranks that ended early, other failures, secondary ones, the rest."""
    uncounted = _uncounted_ranks(views)
    notable = [view for view in views if _is_notable(view) or view.rank in uncounted]
    notable.sort(key=lambda view: (_priority(view, outcome), _ended_at(view), view.rank))
    return tuple(_detail(view) for view in notable[:MAX_DETAILS])


def _is_notable(view: RankView) -> bool:
    # A detail for every rank without a report would not help.
    if view.reason == NOT_REPORTED:
        return False
    if view.state in (FAILED, UNKNOWN) or view.reason in ("PeerFailed", "EndedEarly"):
        return True
    return view.state == STOPPED and view.activity is not None


def _uncounted_ranks(views: tuple[RankView, ...]) -> frozenset[int]:
    """For each reason why steps can't be counted, the first running rank that has it."""
    first: dict[str, int] = {}
    for view in views:
        if view.no_step_reason:
            first.setdefault(view.no_step_reason, view.rank)
    return frozenset(first.values())


def _priority(view: RankView, outcome: Outcome) -> int:
    failure = outcome.failure
    if failure is not None and failure.is_root_cause(view.rank, view.node.node):
        return 0
    if view.reason == "EndedEarly":
        return 1
    order = (FAILED, UNKNOWN, STOPPED, SUCCEEDED, RUNNING, STARTING, PENDING)
    return 2 + order.index(view.state) + (view.reason == "StoppedByMuster")


def _ended_at(view: RankView) -> float:
    return view.end.at if view.end is not None else 0.0


def _detail(view: RankView) -> RankDetail:
    report = view.facts.report if view.facts is not None else None
    return RankDetail(
        rank=view.rank,
        node=view.node.node,
        pod=view.node.process.name,
        node_name=view.node.process.machine,
        state=view.state,
        reason=view.no_step_reason or view.reason,
        message=_message(view),
        pid=report.pid if report is not None else None,
        exit_code=report.exit_code if report is not None else None,
        signal=report.signal if report is not None else None,
        step=(report.step or None) if report is not None else None,
        activity=view.activity,
        at=format_milliseconds(view.end.at) if view.end is not None else None,
    )


def _message(view: RankView) -> str:
    if view.state == RUNNING:
        return "its optimizer's steps can't be counted"
    if view.reason in _MESSAGES:
        return _MESSAGES[view.reason]
    problem = view.node.process.problem
    if problem is not None and view.reason == problem.reason:
        return rank_output.clean(problem.message)
    return rank_output.error_line(view.facts.report.last_lines) if view.facts is not None else ""
