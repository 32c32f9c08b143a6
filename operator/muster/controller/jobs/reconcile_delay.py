"""Compute the delay between two reconciles of a job, from its processor time and the load of the operator."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

CORE_FRACTION = 0.1
"""The fraction of a core that one job may use in the long run."""

BURST_SECONDS = 1.0
"""The processor time that an idle job may save: a job needs many reconciles when it starts and when it ends."""

MIN_DELAY_SECONDS = 0.02
"""The minimum delay between two reconciles, so that one handles all reports that arrive together."""

LOAD_FACTOR, IDLE_WAIT_SECONDS, MAX_LOAD_DELAY_SECONDS = 30.0, 0.003, 1.0
"""If the steps of a namespace wait longer than `IDLE_WAIT_SECONDS` for each other, the minimum delay of its jobs is the
excess times `LOAD_FACTOR`, and at most `MAX_LOAD_DELAY_SECONDS`.

So if hundreds of jobs fail at once, each of them is reconciled once before any is reconciled again.
"""

MAX_URGENT_DELAY_SECONDS = 0.5
"""After a change of a rank's state, the delay is as long as the last reconcile took, and at most this long.

So a large job restarts in a few seconds, and uses at most half of a core meanwhile.
"""


@dataclass
class CpuShare:
    """The processor time of one job, which limits how often it is reconciled. Small jobs have no delay.

    `updated_at` is in monotonic seconds.
    """

    saved_seconds: float = BURST_SECONDS
    updated_at: float | None = None

    def get_delay(self, used_seconds: float, now: float) -> float:
        """Return the seconds until the next reconcile, after one that took `used_seconds` and ended at `now`."""
        earned_seconds = 0.0 if self.updated_at is None else max(0.0, now - self.updated_at) * CORE_FRACTION
        self.saved_seconds = min(BURST_SECONDS, self.saved_seconds + earned_seconds) - used_seconds
        self.updated_at = now
        return max(0.0, -self.saved_seconds) / CORE_FRACTION


@dataclass(frozen=True)
class ReconcileDelay:
    """When the next reconcile starts: after `seconds` at the earliest, and at `requeue_at` even without an event.

    After an urgent change, or if the last reconcile has requested another one at once, it starts after
    `urgent_seconds`.
    """

    seconds: float
    urgent_seconds: float
    requeue_at: float | None

    async def wait(self, now: float, has_urgent_change: Callable[[], bool]) -> None:
        """Sleep from `now` (Unix seconds) until the next reconcile may start."""
        is_next_step = self.requeue_at is not None and self.requeue_at <= now
        remaining = self.seconds
        while remaining > 0.0:
            slice_seconds = min(remaining, self.urgent_seconds)
            await asyncio.sleep(slice_seconds)
            remaining -= slice_seconds
            if is_next_step or has_urgent_change():
                return


def make_delay(
    share_seconds: float, used_seconds: float, wait_seconds: float, requeue_at: float | None
) -> ReconcileDelay:
    """Return the delay after a reconcile that used `used_seconds`.

    The steps of the job's namespace wait `wait_seconds` for each other. `share_seconds` is the delay that the job's
    share of the processor requires.
    """
    load_seconds = min(MAX_LOAD_DELAY_SECONDS, LOAD_FACTOR * (wait_seconds - IDLE_WAIT_SECONDS))
    min_seconds = max(MIN_DELAY_SECONDS, load_seconds)
    urgent_seconds = max(min_seconds, min(MAX_URGENT_DELAY_SECONDS, used_seconds))
    return ReconcileDelay(max(min_seconds, share_seconds), urgent_seconds, requeue_at)
