"""Compute the delay before a failed request to AWS is retried. Pure."""

from __future__ import annotations

from muster.objects.aws.errors import AwsError, Throttled

FIRST_SECONDS = 1.0
MAX_SECONDS = 60.0
_MAX_DOUBLINGS = 10


def compute_backoff(failures: int, error: AwsError, jitter: float) -> float:
    """Return the delay in seconds after `failures` failures. `error` is the last failure.

    `jitter` is a random number from 0 to 1.
    """
    # Retry at once after a single failure. The rate limiter already delays a throttled operation.
    if failures <= 1 or isinstance(error, Throttled):
        return 0.0
    seconds = min(MAX_SECONDS, FIRST_SECONDS * float(1 << min(failures - 2, _MAX_DOUBLINGS)))
    return seconds * (0.5 + jitter / 2)
