"""The ranks by the optimizer steps they have taken, those that are furthest behind first."""

from muster.api.status.status import StepRange
from muster.core.status.progress import counting, step_of
from muster.core.status.ranges import ranges
from muster.core.status.views import RankView

MAX_GROUPS = 16
"""Ranks in step with each other are in two or three; of the rest the slowest are wanted."""


def step_ranges(views: tuple[RankView, ...]) -> tuple[StepRange, ...]:
    """At most `MAX_GROUPS` groups of ranks with as many steps, the fewest steps first."""
    groups: dict[int, list[int]] = {}
    for view in counting(views):
        groups.setdefault(step_of(view), []).append(view.rank)
    return tuple(StepRange(step=step, ranks=ranges(groups[step])) for step in sorted(groups)[:MAX_GROUPS])
