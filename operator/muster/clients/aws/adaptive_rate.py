"""Limit the rate of one kind of request: a token bucket of size one, which refills slower after throttling. Pure.

Times are in seconds of a clock that is never set back.
"""

from __future__ import annotations

BACKOFF_FACTOR = 2.0
"""Each throttled response lengthens the interval by this factor."""

MAX_FACTOR = 32.0
"""The maximum factor. Even with ListTrainingJobs every 16 s, a status is useful."""

RECOVERY_FACTOR = 0.9
"""Each successful response shortens the additional interval by this factor: seven responses halve it."""

_NEGLIGIBLE_FACTOR = 1.01


class AdaptiveRate:
    """The rate of one kind of request. The interval is the quota's, multiplied by `interval_factor`."""

    def __init__(self, per_second: float) -> None:
        self._interval = 1.0 / per_second
        self._last_request_at = float("-inf")
        self._last_throttled_at = float("-inf")
        self.interval_factor = 1.0

    def compute_wait(self, now: float) -> float:
        """Return the seconds until the next request may be sent."""
        return max(0.0, self._last_request_at + self._interval * self.interval_factor - now)

    def start_interval(self, now: float) -> None:
        """Start the interval, when a request is sent or its response arrives."""
        self._last_request_at = max(self._last_request_at, now)

    def record_throttling(self, sent: float) -> None:
        """Record that AWS throttled the request that was sent at `sent`."""
        # Concurrent requests are throttled together: lengthen the interval once.
        if sent <= self._last_throttled_at:
            return
        self._last_throttled_at = max(self._last_request_at, sent)
        self.interval_factor = min(MAX_FACTOR, self.interval_factor * BACKOFF_FACTOR)

    def record_success(self) -> None:
        """Record that AWS did not throttle a request."""
        factor = 1.0 + (self.interval_factor - 1.0) * RECOVERY_FACTOR
        self.interval_factor = factor if factor > _NEGLIGIBLE_FACTOR else 1.0
