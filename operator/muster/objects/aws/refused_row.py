"""How long AWS has refused every request in a row. Pure."""

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
    """`seconds` is the time between refusals that followed each other directly, since the last request that succeeded.

    `last_at` is when the last try was refused, None when the last try was not refused. A try that got no answer says
    nothing about credentials, so the time on either side of it is not counted: AWS may be away for an hour without
    making the row longer. Times are seconds of any one clock.
    """

    seconds: float = 0.0
    last_at: float | None = None

    def after(self, error: AwsError, now: float) -> RefusedRow:
        """The row after a try at `now` that failed with `error`."""
        if isinstance(error, _REFUSALS):
            return self.refused(now)
        return self.unanswered() if isinstance(error, _UNANSWERED) else RefusedRow()

    def refused(self, now: float) -> RefusedRow:
        """The row after a try that was refused at `now`."""
        between = 0.0 if self.last_at is None else max(0.0, now - self.last_at)
        return RefusedRow(self.seconds + between, now)

    def unanswered(self) -> RefusedRow:
        """The row after a try that got no answer."""
        return RefusedRow(self.seconds)
