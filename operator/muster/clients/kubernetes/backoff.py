"""Compute the delay before a failed request to the API server is retried. Pure."""

from __future__ import annotations

from muster.objects.kubernetes.errors import ApiError

FIRST_SECONDS = 0.2
MAX_SECONDS = 15.0
_MAX_DOUBLINGS = 10


def compute_backoff_seconds(failures: int, error: ApiError | None, jitter: float) -> float:
    """Return the delay in seconds after `failures` failures, the last by `error`. `jitter` is random, from 0 to 1.

    The delay doubles with each failure. It is random, so that clients that failed together don't retry together, and at
    least the API server's Retry-After.
    """
    seconds = min(MAX_SECONDS, FIRST_SECONDS * float(1 << min(failures, _MAX_DOUBLINGS)))
    retry_after = error.retry_after if error is not None and error.retry_after is not None else 0.0
    return max(seconds * (0.5 + jitter / 2), retry_after * (1 + jitter / 4))
