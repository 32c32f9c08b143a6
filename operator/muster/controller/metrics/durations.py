"""A histogram of durations, with the buckets of Prometheus."""

import itertools
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass
class DurationHistogram:
    """Counts durations by the first of the ascending `bounds` (seconds) that they don't exceed."""

    bounds: tuple[float, ...]
    seconds: float = 0.0
    _counts: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._counts = [0] * (len(self.bounds) + 1)

    def observe(self, seconds: float) -> None:
        """Add a duration."""
        self.seconds += seconds
        self._counts[bisect_left(self.bounds, seconds)] += 1

    def get_buckets(self) -> Iterator[tuple[str, float]]:
        """Yield each bound as Prometheus writes it, and the number of durations up to it."""
        names = (f"{bound:g}" for bound in self.bounds)
        return zip((*names, "+Inf"), itertools.accumulate(self._counts), strict=True)
