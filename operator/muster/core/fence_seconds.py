"""The time after which the agents of a job stop their ranks because they have no network. See `fence.py`."""

from muster.api.spec.job import Job


def get_fence_seconds(job: Job) -> float:
    """Return the time after which the job's agents stop their ranks if they have no network; 0 if they never do."""
    policy = job.spec.failure_policy
    # A single node has no peers, so it can't distinguish a lost network from a stopped operator.
    return 0.0 if policy is None or job.spec.max_nodes == 1 else float(policy.fence_seconds)
