"""Measure how long AWS has refused all requests. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from muster.objects.aws.errors import (
    AccessDenied,
    AwsError,
    ExpiredCredentials,
    Invalid,
    NoCredentials,
    Throttled,
    Unavailable,
)

_REFUSALS = (AccessDenied, ExpiredCredentials, Invalid, NoCredentials)
_WITHOUT_RESPONSE = (Throttled, Unavailable)


@dataclass(frozen=True)
class RefusalStreak:
    """Consecutive refused requests. `seconds` is the time from the first to the last refusal.

    `last_at` is the time of the last request if it was refused, else None. A request without a response shows nothing
    about the credentials, so the time before and after it doesn't count. All times are in seconds of one clock.
    """

    seconds: float = 0.0
    last_at: float | None = None

    def add_failure(self, error: AwsError, now: float) -> RefusalStreak:
        """Return the streak after a request at `now` failed with `error`."""
        if isinstance(error, _REFUSALS):
            return self.add_refusal(now)
        return self.add_missing_response() if isinstance(error, _WITHOUT_RESPONSE) else RefusalStreak()

    def add_refusal(self, now: float) -> RefusalStreak:
        """Return the streak after a request was refused at `now`."""
        elapsed = 0.0 if self.last_at is None else max(0.0, now - self.last_at)
        return RefusalStreak(self.seconds + elapsed, now)

    def add_missing_response(self) -> RefusalStreak:
        """Return the streak after a request without a response."""
        return RefusalStreak(self.seconds)
