"""All ranks of a job, for the status."""

from muster.api.status import RankStatus, StateRange
from muster.status.details import rank_details
from muster.status.ranges import ranges
from muster.status.steps import step_ranges
from muster.status.views import FAILED, PENDING, RUNNING, STARTING, STOPPED, SUCCEEDED, UNKNOWN, Picture


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
        by_step=step_ranges(picture.views),
        details=rank_details(picture.views, picture.outcome),
    )
