"""Choose the number of ranks on a node."""

from muster.api.spec.job import Job


def choose_procs_per_node(job: Job, devices: int) -> int:
    """Return the number of ranks on a node with this number of devices."""
    procs = job.spec.procs_per_node
    return max(devices, 1) if isinstance(procs, str) else procs
