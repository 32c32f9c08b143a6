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
_INCONCLUSIVE = (Throttled, Unavailable)
"""Errors that don't show whether AWS would accept the request."""


@dataclass(frozen=True)
class RefusalStreak:
    """Refused requests, without an accepted request between them. `seconds` is how long they have been refused.

    `seconds` is the sum of the intervals between two refusals. Intervals before and after an inconclusive failure don't
    count. `last_at` is the time of the last request if it was refused, else None. Times are in seconds of one clock.
    """

    seconds: float = 0.0
    last_at: float | None = None

    def add_failure(self, error: AwsError, now: float) -> RefusalStreak:
        """Return the streak after a request at `now` failed with `error`."""
        if isinstance(error, _REFUSALS):
            return self.add_refusal(now)
        return self.add_inconclusive_failure() if isinstance(error, _INCONCLUSIVE) else RefusalStreak()

    def add_refusal(self, now: float) -> RefusalStreak:
        """Return the streak after a request was refused at `now`."""
        elapsed = 0.0 if self.last_at is None else max(0.0, now - self.last_at)
        return RefusalStreak(self.seconds + elapsed, now)

    def add_inconclusive_failure(self) -> RefusalStreak:
        """Return the streak after AWS throttled a request, or sent no response or a server error."""
        return RefusalStreak(self.seconds)
