"""The world of a job: how many ranks its spec asks for, and on which nodes."""

from muster.api.spec.job import Job
from muster.api.spec.sagemaker.block import list_sagemaker_blocks
from muster.api.spec.sagemaker.launch import list_rank_instance_groups


def get_procs_per_node(job: Job) -> int:
    """Return the number of ranks on each node.

    Raises `ValueError` while `procsPerNode` is still Auto: see `render.kubernetes.devices`.
    """
    procs = job.spec.procs_per_node
    if isinstance(procs, str):
        raise ValueError("spec.procsPerNode is still Auto: resolve it from the node's devices first")
    return procs


def choose_procs_per_node(job: Job, devices: int) -> int:
    """Return the number of ranks on a node with this number of devices."""
    procs = job.spec.procs_per_node
    return max(devices, 1) if isinstance(procs, str) else procs


def count_nodes_and_spares(job: Job) -> int:
    """Return the number of nodes that the job may have at the same time. Their numbers begin with 0."""
    return job.spec.max_nodes + job.spec.spares


def is_mpi(job: Job) -> bool:
    """Whether a single mpirun, on node 0, starts the ranks of all nodes."""
    return job.spec.launcher.chosen_launcher.runs_on_first_node


def count_nodes_with_ranks(job: Job) -> int:
    """Return the number of nodes with ranks: nodes 0, 1, ... On SageMaker only one instance group may have ranks."""
    groups = (group for block in list_sagemaker_blocks(job.spec) for group in list_rank_instance_groups(block))
    return sum(group.instance_count for group in groups) or job.spec.nodes


def compute_world_size(job: Job) -> int:
    """Return the number of the job's ranks."""
    return count_nodes_with_ranks(job) * get_procs_per_node(job)


def find_node_of_rank(job: Job, rank: int) -> int:
    """Return the node of `rank`. Launchers number ranks node by node."""
    return rank // get_procs_per_node(job)


def uploads_to_s3(job: Job) -> bool:
    """Whether each node uploads checkpoints or output to S3 before it ends."""
    checkpoint, output = job.spec.checkpoint, job.spec.output
    return (checkpoint is not None and checkpoint.s3 is not None) or (output is not None and output.s3 is not None)
