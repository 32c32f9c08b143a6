"""A SageMaker job with all that its spec leaves to the operator: its region, and how many ranks a node runs. Pure."""

from muster.api.field_problems import FieldProblem, InvalidResource
from muster.api.spec.job import Job
from muster.api.spec.sagemaker.block import block_of
from muster.api.spec.sagemaker.distribution import Distribution
from muster.api.spec.sagemaker.launch import distribution_of, rank_groups, rank_instance_type
from muster.api.spec.sagemaker.spec import SageMaker
from muster.api.spec.sagemaker.support import has_gpus, is_trainium
from muster.core.instances import instance_of

_PREFIX = "ml."


def apply_defaults(job: Job, default_region: str) -> Job:
    """The job as the plan takes it. `default_region` is the operator's, "" for none. Raises `InvalidResource`."""
    block = block_of(job.spec)
    region = block.region or default_region
    if not region:
        message = "missing, and the operator's configuration has no sagemaker.region; set one of them, e.g. us-west-2"
        raise InvalidResource((FieldProblem("spec.sagemaker.region", message),))
    changes = {
        "sagemaker": block.model_copy(update={"region": region}),
        "procs_per_node": _procs(job, block),
    }
    resolved = job.spec.model_copy(update=changes)
    if isinstance(job.spec.procs_per_node, str):
        # The request says it only where the job does: else the toolkit counts for itself.
        resolved.model_fields_set.discard("procs_per_node")
    return job.model_copy(update={"spec": resolved})


def _procs(job: Job, block: SageMaker) -> int:
    """Ranks on each node, as what starts them counts."""
    distribution, asked = distribution_of(job.spec), job.spec.procs_per_node
    if distribution is not None:
        own = _own_count(distribution, None if isinstance(asked, str) else asked)
        if own is not None:
            return own
    if not isinstance(asked, str):
        return asked
    # A command that starts its ranks itself, on machines that differ: nothing more is known of it.
    if len({group.instance_type for group in block.instance_groups}) > 1 and not rank_groups(block):
        return 1
    return _devices(rank_instance_type(block))


def _own_count(distribution: Distribution, asked: int | None) -> int | None:
    """What the toolkit counts otherwise than by devices (sagemaker-training 5.1.4, runner.py); None: it doesn't."""
    mpi = distribution.mpi
    if mpi is not None and mpi.enabled and (mpi.processes_per_host or asked):
        return mpi.processes_per_host or asked
    # One process a node, which has all of its devices.
    if distribution.parameter_server is not None or distribution.multi_worker_mirrored is not None:
        return 1
    return None


def _devices(instance_type: str) -> int:
    instance = instance_of(instance_type.removeprefix(_PREFIX))
    if instance is not None:
        return max(1, instance.gpus, instance.neuron_cores)
    if has_gpus(instance_type) or is_trainium(instance_type):
        # One rank each would be a status of another world than the toolkit's.
        message = f"found Auto, and muster doesn't know what {instance_type} has; name the ranks on each instance: its "
        raise InvalidResource((FieldProblem("spec.procsPerNode", f"{message}GPUs or Neuron cores"),))
    return 1
