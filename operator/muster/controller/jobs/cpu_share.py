"""Limit a job's processor time: compute the delay before its next reconcile. Small jobs need no delay."""

from dataclasses import dataclass

CORE_FRACTION = 0.1
"""The fraction of a core that one job may use in the long run."""

BURST_SECONDS = 1.0
"""The processor time that an idle job may save. The start and the end of a job need many reconciles in a short time."""


@dataclass
class CpuShare:
    """The processor time of one job. `updated_at` is in monotonic seconds."""

    saved_seconds: float = BURST_SECONDS
    updated_at: float | None = None

    def delay(self, used: float, now: float) -> float:
        """Return the seconds until the next reconcile, after one that used `used` seconds and ended at `now`."""
        earned = 0.0 if self.updated_at is None else max(0.0, now - self.updated_at) * CORE_FRACTION
        self.saved_seconds = min(BURST_SECONDS, self.saved_seconds + earned) - used
        self.updated_at = now
        return max(0.0, -self.saved_seconds) / CORE_FRACTION
