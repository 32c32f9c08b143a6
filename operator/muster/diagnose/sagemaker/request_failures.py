"""Convert AWS' errors to request failures. Pure."""

from dataclasses import replace

from muster.core.facts import Problem
from muster.core.training_job.facts import REFUSALS, FailureKind, RequestFailure
from muster.objects.aws.errors import (
    AccessDenied,
    AwsError,
    ExpiredCredentials,
    Invalid,
    NoCapacity,
    NoCredentials,
    NotFound,
)
from muster.objects.aws.refused_row import RefusedRow

_KINDS: tuple[tuple[type[AwsError], FailureKind], ...] = (
    (NoCapacity, FailureKind.CAPACITY),
    (NoCredentials, FailureKind.ACCESS),
    (ExpiredCredentials, FailureKind.ACCESS),
    (AccessDenied, FailureKind.ACCESS),
    (Invalid, FailureKind.REFUSED),
    (NotFound, FailureKind.REFUSED),
)


def request_failure_of(error: AwsError, now: float) -> RequestFailure:
    """Convert `error`, received at `now` (Unix seconds), to a request failure."""
    kind = next((failure_kind for kind, failure_kind in _KINDS if isinstance(error, kind)), FailureKind.SERVICE)
    return RequestFailure(kind, Problem(error.reason, error.message), now)


def counted(request_failure: RequestFailure, before: RequestFailure | None) -> RequestFailure:
    """The failure with its number of tries; `before` is the previous failure, None after a success."""
    tries = before.tries + 1 if before is not None and before.kind is request_failure.kind else 1
    return replace(request_failure, tries=tries, refused_seconds=_refused_seconds(request_failure, before))


def _refused_seconds(request_failure: RequestFailure, before: RequestFailure | None) -> float:
    row = RefusedRow()
    if before is not None:
        row = RefusedRow(before.refused_seconds, before.at if before.kind in REFUSALS else None)
    if request_failure.kind in REFUSALS:
        row = row.refused(request_failure.at)
    elif request_failure.kind is FailureKind.SERVICE:
        row = row.unanswered()
    else:
        row = RefusedRow()
    return row.seconds
