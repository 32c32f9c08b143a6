"""All ranks of a job, for the status."""

from muster.api.status.status import RankStatus, StateRange, StepRange
from muster.core.status.details import rank_details
from muster.core.status.progress import counting, step_of
from muster.core.status.ranges import ranges
from muster.core.status.views import FAILED, PENDING, RUNNING, STARTING, STOPPED, SUCCEEDED, UNKNOWN, Picture, RankView

MAX_GROUPS = 16
"""Ranks in step with each other form two or three groups; otherwise the slowest ones matter."""


def rank_status(picture: Picture) -> RankStatus:
    """The ranks by state and by step, and those with a problem or another notable state."""
    by_state: dict[str, list[int]] = {}
    for view in picture.views:
        by_state.setdefault(view.state, []).append(view.rank)
    order = (RUNNING, STARTING, PENDING, SUCCEEDED, FAILED, STOPPED, UNKNOWN)
    running = len(by_state.get(RUNNING, ()))
    return RankStatus(
        world=len(picture.views),
        running=running,
        ready=f"{running}/{len(picture.views)}",
        by_state=tuple(
            StateRange(state=state, count=len(by_state[state]), ranks=ranges(by_state[state]))
            for state in order
            if state in by_state
        ),
        by_step=_step_ranges(picture.views),
        details=rank_details(picture.views, picture.outcome),
    )


def _step_ranges(views: tuple[RankView, ...]) -> tuple[StepRange, ...]:
    """At most `MAX_GROUPS` groups of ranks with the same number of steps, fewest first."""
    groups: dict[int, list[int]] = {}
    for view in counting(views):
        groups.setdefault(step_of(view), []).append(view.rank)
    return tuple(StepRange(step=step, ranks=ranges(groups[step])) for step in sorted(groups)[:MAX_GROUPS])
