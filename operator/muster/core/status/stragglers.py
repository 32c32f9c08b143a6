"""Which ranks are behind, and by how much: counts read at different moments, brought to one."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from muster.core.facts import RankFacts

SEEN_LATE_SECONDS = 0.3
"""A step's end and a report's arrival are seen a little late; what that explains is no lag."""


@dataclass(frozen=True)
class Count:
    """A rank's optimizer steps: `step` since `stepped_at`, and not more by `heard_at` (Unix seconds)."""

    rank: int
    step: int
    stepped_at: float
    heard_at: float


def count_of(rank: RankFacts, heard_at: float) -> Count | None:
    """What a report heard at `heard_at` (Unix seconds) says of a rank's steps; None when they are not counted."""
    step = rank.report.step
    if step is None:
        return None
    return Count(rank.report.rank, step, heard_at if rank.stepped_at is None else rank.stepped_at, heard_at)


def steps_behind(counts: Iterable[Count], pace: float | None) -> Mapping[int, int]:
    """How many steps each rank lacks to the one that is furthest; 0 for what the reports' moments explain.

    Nodes report in turns, and between two reports a healthy rank goes on: at 20 steps/s and a report a second, equal
    ranks seem 20 steps apart. So every count is taken back to the oldest report's moment, at `pace` (steps/s). Without
    a pace, only counts of the same report are compared.
    """
    items = tuple(counts)
    if pace is None:
        return _steps_behind_in_report(items)
    moment = min((count.heard_at for count in items), default=0.0)
    then = {count.rank: count.step - pace * max(0.0, count.stepped_at - moment) for count in items}
    furthest = max(then.values(), default=0.0)
    explained = 1 + pace * SEEN_LATE_SECONDS
    return {rank: round(furthest - step) if furthest - step > explained else 0 for rank, step in then.items()}


def _steps_behind_in_report(counts: tuple[Count, ...]) -> Mapping[int, int]:
    furthest: dict[float, int] = {}
    for count in counts:
        furthest[count.heard_at] = max(count.step, furthest.get(count.heard_at, 0))
    behind = {count.rank: furthest[count.heard_at] - count.step for count in counts}
    # Ranks in step with each other are one apart at any moment.
    return {rank: steps if steps > 1 else 0 for rank, steps in behind.items()}
