"""How long to wait before SageMaker is asked again for what it did not give."""

import hashlib

from muster.core.training_job.facts import RequestFailure

FIRST_CAPACITY_SECONDS = 30.0
MAX_CAPACITY_SECONDS = 1800.0
"""Instances that are not to be had come back with somebody else's end: in minutes, or in hours."""

FIRST_SECONDS = 5.0
MAX_SECONDS = 300.0
"""Credentials are put right by a person, who then looks at the status."""

_MAX_DOUBLINGS = 16
_HASH_BYTES = 8


def capacity_backoff(job_uid: str, tries: int) -> float:
    """Seconds after the `tries`th time in a row (from 1): they double, and differ from job to job."""
    return _backoff(job_uid, tries, FIRST_CAPACITY_SECONDS, MAX_CAPACITY_SECONDS)


def retry_at(job_uid: str, request_failure: RequestFailure) -> float:
    """When to ask again after a request failure that isn't for want of capacity (Unix seconds).

    Also for what was refused as it is written: a role or a bucket that it names may be made later.
    """
    return request_failure.at + _backoff(job_uid, request_failure.tries, FIRST_SECONDS, MAX_SECONDS)


def _backoff(job_uid: str, tries: int, first: float, longest: float) -> float:
    doubled = first * float(1 << min(tries - 1, _MAX_DOUBLINGS))
    # Jobs that were refused together would come back together. Drawn from what every operator knows.
    digest = hashlib.sha256(f"{job_uid}/{tries}".encode()).digest()[:_HASH_BYTES]
    share = int.from_bytes(digest, "big") / 2.0 ** (8 * _HASH_BYTES)
    return min(doubled, longest) * (0.75 + share / 2)
