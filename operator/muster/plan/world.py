"""The world that a job asks for: how many ranks, and which node each belongs to."""

from muster.api.spec import Job


def procs_per_node(job: Job) -> int:
    """Ranks on each node. Raises `ValueError` while `procsPerNode` is still Auto: see `render.resolve_procs`."""
    procs = job.spec.procs_per_node
    if isinstance(procs, str):
        raise ValueError("spec.procsPerNode is still Auto: resolve it from the node's devices first")
    return procs


def is_mpi(job: Job) -> bool:
    """Whether one mpirun, on node 0, starts the ranks of all nodes."""
    return job.spec.launcher.mpi is not None


def world_size(job: Job) -> int:
    """How many ranks the job asks for."""
    return job.spec.nodes * procs_per_node(job)


def home_of(job: Job, rank: int) -> int:
    """The node that `rank` belongs to; launchers number ranks node by node."""
    return rank // procs_per_node(job)
