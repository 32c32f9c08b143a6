"""Convert AWS' errors to request failures. Pure."""

from dataclasses import replace

from muster.core.problem import Problem
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
from muster.objects.aws.refusal_streak import RefusalStreak

_KINDS: tuple[tuple[type[AwsError], FailureKind], ...] = (
    (NoCapacity, FailureKind.CAPACITY),
    (NoCredentials, FailureKind.ACCESS),
    (ExpiredCredentials, FailureKind.ACCESS),
    (AccessDenied, FailureKind.ACCESS),
    (Invalid, FailureKind.REFUSED),
    (NotFound, FailureKind.REFUSED),
)


def build_request_failure(error: AwsError, now: float) -> RequestFailure:
    """Convert an error at `now` (Unix seconds) to a request failure."""
    kind = next((failure_kind for kind, failure_kind in _KINDS if isinstance(error, kind)), FailureKind.SERVICE)
    return RequestFailure(kind, Problem(error.reason, error.message), now)


def add_tries(request_failure: RequestFailure, previous: RequestFailure | None) -> RequestFailure:
    """Return the failure with `tries` and `refused_seconds` set from the previous failure; None after a success."""
    tries = previous.tries + 1 if previous is not None and previous.kind is request_failure.kind else 1
    return replace(request_failure, tries=tries, refused_seconds=_compute_refused_seconds(request_failure, previous))


def _compute_refused_seconds(request_failure: RequestFailure, previous: RequestFailure | None) -> float:
    streak = RefusalStreak()
    if previous is not None:
        streak = RefusalStreak(previous.refused_seconds, previous.at if previous.kind in REFUSALS else None)
    if request_failure.kind in REFUSALS:
        streak = streak.add_refusal(request_failure.at)
    elif request_failure.kind is FailureKind.SERVICE:
        streak = streak.add_inconclusive_failure()
    else:
        streak = RefusalStreak()
    return streak.seconds
