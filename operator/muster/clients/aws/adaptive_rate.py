"""Limit the rate of one kind of request: a token bucket of size one, which refills slower after throttling. Pure.

Times are in seconds of a clock that is never set back.
"""

from __future__ import annotations

BACKOFF_FACTOR = 2.0
"""The factor by which each throttled response lengthens the interval."""

MAX_FACTOR = 32.0
"""The limit of the factor: ListTrainingJobs every 16 s still keeps a status useful."""

RECOVERY_FACTOR = 0.9
"""The factor by which a successful response shortens the additional interval: seven responses halve it."""

_UNNOTICEABLE = 1.01


class AdaptiveRate:
    """The rate of one kind of request. `width` is the factor by which the interval exceeds the quota's."""

    def __init__(self, per_second: float) -> None:
        self._interval = 1.0 / per_second
        self._last = float("-inf")
        self._widened_for = float("-inf")
        self.width = 1.0

    def wait(self, now: float) -> float:
        """Seconds until the next request may be sent; 0 for now."""
        return max(0.0, self._last + self._interval * self.width - now)

    def take(self, now: float) -> None:
        """Start the interval, when a request is sent or its response arrives."""
        self._last = max(self._last, now)

    def refused(self, sent: float) -> None:
        """Record that AWS throttled the request that was sent at `sent`."""
        # Concurrent requests are throttled together: lengthen the interval once.
        if sent <= self._widened_for:
            return
        self._widened_for = max(self._last, sent)
        self.width = min(MAX_FACTOR, self.width * BACKOFF_FACTOR)

    def accepted(self) -> None:
        """Record that AWS did not throttle a request."""
        narrower = 1.0 + (self.width - 1.0) * RECOVERY_FACTOR
        self.width = narrower if narrower > _UNNOTICEABLE else 1.0
