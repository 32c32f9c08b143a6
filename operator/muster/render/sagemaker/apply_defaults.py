"""Apply the operator's defaults to a SageMaker job: its region, and the number of ranks on each node. Pure."""

from muster.api.field_problems import FieldProblem, InvalidResource
from muster.api.spec.job import Job
from muster.api.spec.sagemaker.block import get_sagemaker_block
from muster.api.spec.sagemaker.distribution import Distribution
from muster.api.spec.sagemaker.launch import choose_distribution, get_rank_instance_type, list_rank_instance_groups
from muster.api.spec.sagemaker.spec import SageMaker
from muster.api.spec.sagemaker.support import has_gpus, is_trainium
from muster.core.instances import find_instance_type

_PREFIX = "ml."


def apply_defaults(job: Job, default_region: str) -> Job:
    """Return the complete job. `default_region` is the operator's, "" for none. Raises `InvalidResource`."""
    block = get_sagemaker_block(job.spec)
    region = block.region or default_region
    if not region:
        message = "missing, as is sagemaker.region in the operator's configuration; set one of the two, e.g. us-west-2"
        raise InvalidResource((FieldProblem("spec.sagemaker.region", message),))
    changes = {
        "sagemaker": block.model_copy(update={"region": region}),
        "procs_per_node": _get_procs_per_node(job, block),
    }
    resolved = job.spec.model_copy(update=changes)
    if isinstance(job.spec.procs_per_node, str):
        # The request contains only a number that the user set. Without one, the toolkit counts the devices.
        resolved.model_fields_set.discard("procs_per_node")
    return job.model_copy(update={"spec": resolved})


def _get_procs_per_node(job: Job, block: SageMaker) -> int:
    """Return the number of ranks that the launcher starts on each node."""
    distribution, requested = choose_distribution(job.spec), job.spec.procs_per_node
    if distribution is not None:
        toolkit_count = _get_toolkit_procs(distribution, None if isinstance(requested, str) else requested)
        if toolkit_count is not None:
            return toolkit_count
    if not isinstance(requested, str):
        return requested
    # The command starts its own ranks on different instance types, so muster doesn't know their number.
    if len({group.instance_type for group in block.instance_groups}) > 1 and not list_rank_instance_groups(block):
        return 1
    return _count_devices(get_rank_instance_type(block))


def _get_toolkit_procs(distribution: Distribution, requested_procs: int | None) -> int | None:
    """Return the toolkit's number of ranks; None if it depends on devices (sagemaker-training 5.1.4, runner.py)."""
    mpi = distribution.mpi
    if mpi is not None and mpi.enabled and (mpi.processes_per_host or requested_procs):
        return mpi.processes_per_host or requested_procs
    # These distributions start one process on each node, which uses all devices.
    if distribution.parameter_server is not None or distribution.multi_worker_mirrored is not None:
        return 1
    return None


def _count_devices(instance_type: str) -> int:
    instance = find_instance_type(instance_type.removeprefix(_PREFIX))
    if instance is not None:
        return max(1, instance.gpus, instance.neuron_cores)
    if has_gpus(instance_type) or is_trainium(instance_type):
        # A default of one rank could differ from the toolkit's count.
        message = f"found Auto, and muster doesn't know the devices of {instance_type}; set the number of its "
        raise InvalidResource((FieldProblem("spec.procsPerNode", f"{message}GPUs or Neuron cores"),))
    return 1
