"""The time without a step after which a rank hangs. See `hangs.py`."""

from muster.api.spec.job import Job

STALL_SECONDS = 600
"""A job without `hangTimeoutSeconds` is Stalled after this time without a step. muster does not stop it."""


def find_timeout(job: Job) -> int:
    """Return the seconds without a step after which a rank of the job hangs."""
    policy = job.spec.failure_policy
    return STALL_SECONDS if policy is None or policy.hang_timeout_seconds is None else policy.hang_timeout_seconds
