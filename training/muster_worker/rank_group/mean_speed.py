"""The mean speed of a rank, from which muster estimates the remaining time. Pure.

It is the mean over the second half of the time so far. So slow first steps, which compile code and fill caches, soon
stop to count, and a few long steps, for example with an evaluation, change it little.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Tuple

from muster_worker.contract.trainer_status import MAX_STEPS_PER_SECOND, MIN_STEPS_PER_SECOND

MAX_SAMPLES = 64
"""With more samples, every second one is dropped."""


@dataclass(frozen=True)
class SpeedSamples:
    """Steps with the times at which they were completed, in order. `is_reported`: the script has counted the steps."""

    samples: Tuple[Tuple[int, float], ...] = ()
    is_reported: bool = False

    def add(self, step: int, at: float, *, is_reported: bool = False) -> SpeedSamples:
        """Return the samples with another one. If the count begins again, only the new one remains."""
        last_step, last_at = self.samples[-1] if self.samples else (step, at)
        if is_reported != self.is_reported or step < last_step or not self.samples:
            return SpeedSamples(((step, at),), is_reported)
        if step == last_step or at <= last_at:
            return self
        samples = (*self.samples, (step, at))
        return SpeedSamples(samples if len(samples) <= MAX_SAMPLES else samples[::2], is_reported)

    @property
    def steps_per_second(self) -> Optional[float]:
        """The mean speed; None before the second sample, or if the script's steps can't be steps."""
        if len(self.samples) < 2:  # noqa: PLR2004 - a speed needs two times
            return None
        last_step, last_at = self.samples[-1]
        middle = (self.samples[0][1] + last_at) / 2
        step, at = max((sample for sample in self.samples if sample[1] <= middle), key=_get_time)
        speed = (last_step - step) / (last_at - at)
        return speed if MIN_STEPS_PER_SECOND <= speed <= MAX_STEPS_PER_SECOND else None


def _get_time(sample: Tuple[int, float]) -> float:
    return sample[1]
