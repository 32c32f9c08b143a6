"""All ranks of a job, for the status."""

from muster.api.status.status import RankStatus, StateRange, StepRange
from muster.core.status.details import rank_details
from muster.core.status.progress import ranks_with_steps, steps_completed
from muster.core.status.ranges import ranges
from muster.core.status.views import (
    FAILED,
    PENDING,
    RUNNING,
    STARTING,
    STOPPED,
    SUCCEEDED,
    UNKNOWN,
    RankView,
    StatusInput,
)

MAX_GROUPS = 16
"""Healthy ranks form two or three groups; otherwise the slowest ones matter."""


def rank_status(status_input: StatusInput) -> RankStatus:
    """The ranks by state and by step, and those with a problem or another notable state."""
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
            StateRange(state=state, count=len(by_state[state]), ranks=ranges(by_state[state]))
            for state in order
            if state in by_state
        ),
        by_step=_step_ranges(status_input.views),
        details=rank_details(status_input.views, status_input.outcome),
    )


def _step_ranges(views: tuple[RankView, ...]) -> tuple[StepRange, ...]:
    """At most `MAX_GROUPS` groups of ranks with the same number of steps, fewest first."""
    groups: dict[int, list[int]] = {}
    for view in ranks_with_steps(views):
        groups.setdefault(steps_completed(view), []).append(view.rank)
    return tuple(StepRange(step=step, ranks=ranges(groups[step])) for step in sorted(groups)[:MAX_GROUPS])
