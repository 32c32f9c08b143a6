"""Limit a job's processor time by a delay before its next reconcile. Small jobs have no delay."""

from dataclasses import dataclass

CORE_FRACTION = 0.1
"""The fraction of a core that one job may use in the long run."""

BURST_SECONDS = 1.0
"""The processor time that an idle job may save: a job needs many reconciles when it starts and when it ends."""


@dataclass
class CpuShare:
    """The processor time of one job. `updated_at` is in monotonic seconds."""

    saved_seconds: float = BURST_SECONDS
    updated_at: float | None = None

    def get_delay(self, used: float, now: float) -> float:
        """Return the seconds until the next reconcile, after one that used `used` seconds and ended at `now`."""
        earned_seconds = 0.0 if self.updated_at is None else max(0.0, now - self.updated_at) * CORE_FRACTION
        self.saved_seconds = min(BURST_SECONDS, self.saved_seconds + earned_seconds) - used
        self.updated_at = now
        return max(0.0, -self.saved_seconds) / CORE_FRACTION
