"""Group the ranks by their optimizer steps, slowest first."""

from muster.api.status import StepRange
from muster.status.progress import counting, step_of
from muster.status.ranges import ranges
from muster.status.views import RankView

MAX_GROUPS = 16
"""Ranks in step with each other form two or three groups; otherwise the slowest ones matter."""


def step_ranges(views: tuple[RankView, ...]) -> tuple[StepRange, ...]:
    """At most `MAX_GROUPS` groups of ranks with the same number of steps, fewest first."""
    groups: dict[int, list[int]] = {}
    for view in counting(views):
        groups.setdefault(step_of(view), []).append(view.rank)
    return tuple(StepRange(step=step, ranks=ranges(groups[step])) for step in sorted(groups)[:MAX_GROUPS])
