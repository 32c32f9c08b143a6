"""Find ranks that are steps behind the others: compare step counts that were read at different times."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from muster.core.facts import RankFacts

OBSERVATION_DELAY_SECONDS = 0.3
"""A step's end and a report's arrival are observed up to this much later; such a delay is no lag."""


@dataclass(frozen=True)
class Count:
    """A rank's step count. The rank reached `step` at `highest_step_at`. The last report came at `last_report_at`.

    Times are in Unix seconds.
    """

    rank: int
    step: int
    highest_step_at: float
    last_report_at: float


def read_step_count(rank: RankFacts, last_report_at: float) -> Count | None:
    """Read a rank's step count from a report received at `last_report_at` (Unix seconds); None without a count."""
    step = rank.report.step
    if step is None:
        return None
    return Count(
        rank.report.rank, step, last_report_at if rank.highest_step_at is None else rank.highest_step_at, last_report_at
    )


def compare_step_counts(counts: Iterable[Count], pace: float | None) -> Mapping[int, int]:
    """How many steps each rank is behind the fastest one; 0 if the times of the reports explain the difference.

    Nodes report at different times, and healthy ranks continue between two reports: at 20 steps/s and a report a
    second, equal ranks seem to be 20 steps apart. So every count is extrapolated back to the time of the oldest report,
    at `pace` (steps/s). Without a pace, only counts of the same report are compared.
    """
    items = tuple(counts)
    if pace is None:
        return _steps_behind_in_report(items)
    oldest_report_at = min((count.last_report_at for count in items), default=0.0)
    steps = {count.rank: count.step - pace * max(0.0, count.highest_step_at - oldest_report_at) for count in items}
    furthest = max(steps.values(), default=0.0)
    tolerance = 1 + pace * OBSERVATION_DELAY_SECONDS
    return {rank: round(furthest - step) if furthest - step > tolerance else 0 for rank, step in steps.items()}


def _steps_behind_in_report(counts: tuple[Count, ...]) -> Mapping[int, int]:
    furthest: dict[float, int] = {}
    for count in counts:
        furthest[count.last_report_at] = max(count.step, furthest.get(count.last_report_at, 0))
    behind = {count.rank: furthest[count.last_report_at] - count.step for count in counts}
    # Even healthy ranks may be one step apart at any moment.
    return {rank: steps if steps > 1 else 0 for rank, steps in behind.items()}
