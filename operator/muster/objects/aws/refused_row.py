"""How long AWS has refused consecutive requests. Pure."""

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
_UNANSWERED = (Throttled, Unavailable)


@dataclass(frozen=True)
class RefusedRow:
    """A row of consecutive refusals; `seconds` is their duration since the last successful request.

    `last_at` is the time of the last request if it was refused, else None. A request without a response gives no
    information about credentials, so the time before and after it doesn't count. All times are seconds of one clock.
    """

    seconds: float = 0.0
    last_at: float | None = None

    def after(self, error: AwsError, now: float) -> RefusedRow:
        """The value after a request at `now` failed with `error`."""
        if isinstance(error, _REFUSALS):
            return self.refused(now)
        return self.unanswered() if isinstance(error, _UNANSWERED) else RefusedRow()

    def refused(self, now: float) -> RefusedRow:
        """The value after a request was refused at `now`."""
        between = 0.0 if self.last_at is None else max(0.0, now - self.last_at)
        return RefusedRow(self.seconds + between, now)

    def unanswered(self) -> RefusedRow:
        """The value after a request without a response."""
        return RefusedRow(self.seconds)
