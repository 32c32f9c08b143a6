"""Find ranks that are steps behind the others, from step counts of different times."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # The board uses this module without facts.
    from muster.core.facts import RankFacts

OBSERVATION_DELAY_SECONDS = 0.3
"""muster may observe a step or a report this much later than it happens. A rank within this delay is not behind."""


@dataclass(frozen=True)
class StepCount:
    """A rank's step count. The rank reached `step` at `highest_step_at`. The last report came at `last_report_at`.

    Times are in Unix seconds.
    """

    rank: int
    step: int
    highest_step_at: float
    last_report_at: float


def read_step_count(rank: RankFacts, last_report_at: float) -> StepCount | None:
    """Read a rank's step count from a report received at `last_report_at` (Unix seconds); None without a count."""
    step = rank.report.step
    if step is None:
        return None
    return StepCount(
        rank.report.rank, step, last_report_at if rank.highest_step_at is None else rank.highest_step_at, last_report_at
    )


def compare_step_counts(counts: Iterable[StepCount], speed: float | None) -> Mapping[int, int]:
    """Return how many steps each rank is behind the fastest rank; 0 if the times of the reports explain the difference.

    Nodes report at different times, and healthy ranks continue between two reports. At 20 steps/s and one report per
    second, equal ranks seem to be 20 steps apart. So this function extrapolates every count back to the time of the
    oldest report, at `speed` (steps/s). Without a speed, it compares only counts of the same report.
    """
    items = tuple(counts)
    if speed is None:
        return _compare_within_report(items)
    oldest_report_at = min((count.last_report_at for count in items), default=0.0)
    steps = {count.rank: count.step - speed * max(0.0, count.highest_step_at - oldest_report_at) for count in items}
    highest_step = max(steps.values(), default=0.0)
    tolerance = 1 + speed * OBSERVATION_DELAY_SECONDS
    return {rank: round(highest_step - step) if highest_step - step > tolerance else 0 for rank, step in steps.items()}


def _compare_within_report(counts: tuple[StepCount, ...]) -> Mapping[int, int]:
    highest_step: dict[float, int] = {}
    for count in counts:
        highest_step[count.last_report_at] = max(count.step, highest_step.get(count.last_report_at, 0))
    behind = {count.rank: highest_step[count.last_report_at] - count.step for count in counts}
    # Even healthy ranks may be one step apart at any moment.
    return {rank: steps if steps > 1 else 0 for rank, steps in behind.items()}
