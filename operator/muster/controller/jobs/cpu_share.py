"""Limit a job's processor time: compute the delay before its next reconcile. Small jobs have no delay."""

from dataclasses import dataclass

CORE_FRACTION = 0.1
"""The fraction of a core that one job may use in the long run."""

BURST_SECONDS = 1.0
"""Processor time that an idle job may save up: the start and the end of a job take many reconciles in a row, and users
wait for them."""


@dataclass
class CpuShare:
    """The share of one job. Times are monotonic seconds."""

    saved: float = BURST_SECONDS
    at: float | None = None

    def delay(self, took: float, now: float) -> float:
        """Return the seconds until the next reconcile, after one that used `took` seconds and ended at `now`."""
        earned = 0.0 if self.at is None else max(0.0, now - self.at) * CORE_FRACTION
        self.saved = min(BURST_SECONDS, self.saved + earned) - took
        self.at = now
        return max(0.0, -self.saved) / CORE_FRACTION
