"""How long a job rests after a turn: none while it is quick, so that in the long run it takes its share and no more."""

from dataclasses import dataclass

SHARE = 0.1
"""Of a core, for one job in the long run."""

SAVED_SECONDS = 1.0
"""Of processor time that a quiet job may have saved up: its start and its end are many turns in a row, and somebody
waits for each of them."""


@dataclass
class CpuShare:
    """One job's. Times are seconds of a clock that only goes forward."""

    saved: float = SAVED_SECONDS
    at: float | None = None

    def delay(self, took: float, now: float) -> float:
        """Seconds until the next turn after one that took so much processor time and ended at `now`."""
        earned = 0.0 if self.at is None else max(0.0, now - self.at) * SHARE
        self.saved = min(SAVED_SECONDS, self.saved + earned) - took
        self.at = now
        return max(0.0, -self.saved) / SHARE
