"""Exponential backoff for requests to SageMaker."""

import hashlib

from muster.core.training_job.facts import RequestFailure

FIRST_CAPACITY_SECONDS = 30.0
MAX_CAPACITY_SECONDS = 1800.0
"""The bounds of the wait for instances, which become available when other jobs end, after minutes or hours."""

FIRST_SECONDS = 5.0
MAX_SECONDS = 300.0
"""The bounds for other failures. They are low, because users who fix credentials watch the status."""

_MAX_DOUBLINGS = 16
_HASH_BYTES = 8


def compute_capacity_backoff(job_uid: str, tries: int) -> float:
    """Return the wait in seconds after `tries` failures in a row: exponential, with a different jitter for each job."""
    return _compute_backoff(job_uid, tries, FIRST_CAPACITY_SECONDS, MAX_CAPACITY_SECONDS)


def compute_retry_time(job_uid: str, request_failure: RequestFailure) -> float:
    """Return when to retry a request that failed for another reason than missing capacity (Unix seconds).

    muster also retries invalid requests, because a user may create a missing role or bucket later.
    """
    return request_failure.at + _compute_backoff(job_uid, request_failure.tries, FIRST_SECONDS, MAX_SECONDS)


def _compute_backoff(job_uid: str, tries: int, first: float, max_seconds: float) -> float:
    doubled = first * float(1 << min(tries - 1, _MAX_DOUBLINGS))
    # The jitter separates jobs that failed together. It is a hash, so every operator computes the same time.
    digest = hashlib.sha256(f"{job_uid}/{tries}".encode()).digest()[:_HASH_BYTES]
    share = int.from_bytes(digest, "big") / 2.0 ** (8 * _HASH_BYTES)
    return min(doubled, max_seconds) * (0.75 + share / 2)
