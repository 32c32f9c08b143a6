"""When the next request of a kind may be sent: a token bucket that holds one, and fills slower after refusals. Pure.

Times are in seconds of a clock that is never set back.
"""

from __future__ import annotations

WIDEN = 2.0
"""How much longer the pause becomes with each answer that says that requests come too fast."""

MAX_WIDTH = 32.0
"""ListTrainingJobs every 16 s is as slow as a status may become; who shares the account needs no more room."""

NARROW = 0.9
"""What of the additional pause is left after an answer that says nothing of the kind: half of it after seven."""

_UNNOTICEABLE = 1.01


class Pace:
    """Requests of one kind. `width` is how many times as long as the quota demands the pause between them is now."""

    def __init__(self, per_second: float) -> None:
        self._interval = 1.0 / per_second
        self._last = float("-inf")
        self._widened_for = float("-inf")
        self.width = 1.0

    def wait(self, now: float) -> float:
        """Seconds until one may be sent; 0 when it may be sent now."""
        return max(0.0, self._last + self._interval * self.width - now)

    def take(self, now: float) -> None:
        """One is sent, or its answer has come: the pause begins now."""
        self._last = max(self._last, now)

    def refused(self, sent: float) -> None:
        """One that was sent at `sent` came too soon after others."""
        # Those that were under way together are refused together, which is one piece of news.
        if sent <= self._widened_for:
            return
        self._widened_for = max(self._last, sent)
        self.width = min(MAX_WIDTH, self.width * WIDEN)

    def accepted(self) -> None:
        """One was answered with anything else."""
        narrower = 1.0 + (self.width - 1.0) * NARROW
        self.width = narrower if narrower > _UNNOTICEABLE else 1.0
