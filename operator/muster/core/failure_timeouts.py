"""The times of a job's failure policy: until its nodes fence themselves, and until a rank without a step hangs."""

from muster.api.spec.job import Job

STALL_SECONDS = 600
"""A job without `hangTimeoutSeconds` is Stalled after this time without a step. muster does not stop it."""


def get_fence_seconds(job: Job) -> float:
    """Return the time after which the job's agents stop their ranks if they have no network; 0 if they never do."""
    policy = job.spec.failure_policy
    # A single node has no peers, so it can't distinguish a lost network from a stopped operator.
    return 0.0 if policy is None or job.spec.max_nodes == 1 else float(policy.fence_seconds)


def get_hang_timeout(job: Job) -> int:
    """Return the seconds without a step after which a rank of the job hangs."""
    policy = job.spec.failure_policy
    return STALL_SECONDS if policy is None or policy.hang_timeout_seconds is None else policy.hang_timeout_seconds
