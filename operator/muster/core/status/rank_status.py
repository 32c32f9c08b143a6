"""The ranks in the status: by state, by step, and those with a problem or another notable state."""

from muster.api.status.status import RankDetail, RankStatus, StateRange, StepRange
from muster.api.timestamps import format_timestamp_milliseconds
from muster.core.failure import rank_output
from muster.core.failure.ends import STRAGGLER
from muster.core.outcome import Outcome
from muster.core.status.hang import order_hanging_ranks
from muster.core.status.progress import count_completed_steps, select_ranks_with_steps
from muster.core.status.rank_ranges import format_ranges
from muster.core.status.straggler_record import describe_slow_ranks
from muster.core.status.views import (
    FAILED,
    NOT_EXITED,
    NOT_REPORTED,
    PENDING,
    RUNNING,
    STARTING,
    STOPPED,
    SUCCEEDED,
    UNKNOWN,
    RankView,
    StatusInput,
)
from muster.core.steps.hangs import HUNG

MAX_GROUPS = 16
"""The maximum number of groups of ranks with the same step. Healthy ranks form two or three groups."""

MAX_DETAILS = 16
"""The maximum number of details, which keeps the status small even with 100,000 ranks."""

_MESSAGES = {
    "NodeSilent": "its agent no longer reports",
    "NotHeard": "its agent has not reported since the operator started",
}


def build_rank_status(status_input: StatusInput) -> RankStatus:
    """Return the ranks by state and by step, and the details of ranks with a problem or another notable state."""
    by_state: dict[str, list[int]] = {}
    for view in status_input.views:
        by_state.setdefault(view.state, []).append(view.rank)
    order = (RUNNING, STARTING, PENDING, SUCCEEDED, FAILED, STOPPED, UNKNOWN)
    running = len(by_state.get(RUNNING, ()))
    return RankStatus(
        world=len(status_input.views),
        running=running,
        ready=f"{running}/{len(status_input.views)}",
        by_state=tuple(
            StateRange(state=state, count=len(by_state[state]), ranks=format_ranges(by_state[state]))
            for state in order
            if state in by_state
        ),
        by_step=_build_step_ranges(status_input.views),
        details=_build_rank_details(status_input.views, status_input.outcome),
    )


def _build_step_ranges(views: tuple[RankView, ...]) -> tuple[StepRange, ...]:
    """Return at most `MAX_GROUPS` groups of ranks with the same number of steps, fewest steps first."""
    groups: dict[int, list[int]] = {}
    for view in select_ranks_with_steps(views):
        groups.setdefault(count_completed_steps(view), []).append(view.rank)
    return tuple(StepRange(step=step, ranks=format_ranges(groups[step])) for step in sorted(groups)[:MAX_GROUPS])


def _build_rank_details(views: tuple[RankView, ...], outcome: Outcome) -> tuple[RankDetail, ...]:
    """Return at most `MAX_DETAILS` ranks: root causes, early exits, other failures, secondary failures, other ranks."""
    without_step_count = _find_ranks_without_step_count(views)
    hung, stragglers = order_hanging_ranks(outcome), describe_slow_ranks(outcome)
    special = without_step_count | hung.keys() | stragglers.keys()
    notable = [view for view in views if _is_notable(view) or view.rank in special]
    notable.sort(
        key=lambda view: (_get_priority(view, outcome), _get_end_time(view), hung.get(view.rank, 0), view.rank)
    )
    remarks = {rank: (STRAGGLER, text) for rank, text in stragglers.items()}
    remarks.update(dict.fromkeys(hung, (HUNG, "it has stopped completing steps")))
    return tuple(_build_detail(view, remarks.get(view.rank)) for view in notable[:MAX_DETAILS])


def _is_notable(view: RankView) -> bool:
    # In a job without a collector all ranks may lack a report.
    if view.reason == NOT_REPORTED:
        return False
    if view.state in (FAILED, UNKNOWN) or view.reason in ("PeerFailed", "EndedEarly", NOT_EXITED):
        return True
    return view.state == STOPPED and view.activity is not None


def _find_ranks_without_step_count(views: tuple[RankView, ...]) -> frozenset[int]:
    """Return the first running rank for each reason why steps can't be counted."""
    first: dict[str, int] = {}
    for view in views:
        if view.no_step_reason:
            first.setdefault(view.no_step_reason, view.rank)
    return frozenset(first.values())


def _get_priority(view: RankView, outcome: Outcome) -> int:
    failure = outcome.failure
    if failure is not None and failure.is_root_cause(view.rank, view.node.node):
        return 0
    if view.reason == "EndedEarly":
        return 1
    order = (FAILED, UNKNOWN, STOPPED, SUCCEEDED, RUNNING, STARTING, PENDING)
    return 2 + order.index(view.state) + (view.reason == "StoppedByMuster")


def _get_end_time(view: RankView) -> float:
    return view.end.at if view.end is not None else 0.0


def _build_detail(view: RankView, remark: tuple[str, str] | None) -> RankDetail:
    """Return the rank's detail; `remark` has the reason and the message for a rank that hangs or is slow."""
    reason, message = remark or (view.no_step_reason or view.reason, _describe_rank(view))
    report = view.facts.report if view.facts is not None else None
    return RankDetail(
        rank=view.rank,
        node=view.node.node,
        pod=view.node.process.name,
        node_name=view.node.process.kube_node,
        state=view.state,
        reason=reason,
        message=message,
        pid=report.pid if report is not None else None,
        exit_code=report.exit_code if report is not None else None,
        signal=report.signal if report is not None else None,
        step=(report.step or None) if report is not None else None,
        activity=view.activity,
        last_collective=view.last_collective,
        at=format_timestamp_milliseconds(view.end.at) if view.end is not None else None,
    )


def _describe_rank(view: RankView) -> str:
    if view.reason == NOT_EXITED:
        return f"it has not exited since its error: {view.error_line}"
    if view.state == RUNNING:
        return "its optimizer's steps can't be counted"
    if view.reason in _MESSAGES:
        return _MESSAGES[view.reason]
    problem = view.node.process.problem
    if problem is not None and view.reason == problem.reason:
        return rank_output.sanitize_line(problem.message)
    return view.error_line
