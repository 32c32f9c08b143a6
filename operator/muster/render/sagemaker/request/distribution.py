"""Render the SageMaker Training Toolkit's hyperparameters for distributed training. Pure.

The rules are the SageMaker SDK's (sagemaker 2.257.7): `_distribution_configuration` of estimator.py,
`_pytorch_distribution_configuration` of pytorch/estimator.py and `_huggingface_distribution_configuration` of
huggingface/estimator.py.
"""

from muster.api.document import JSON
from muster.api.spec.job import Spec
from muster.api.spec.sagemaker.block import get_sagemaker_block
from muster.api.spec.sagemaker.distribution import DataParallel, Distribution
from muster.api.spec.sagemaker.framework import Framework
from muster.api.spec.sagemaker.launch import (
    choose_distribution,
    get_explicit_procs_per_node,
    list_rank_instance_groups,
    uses_some_instance_groups,
)
from muster.api.spec.sagemaker.spec import SageMaker

PROCESSES = "sagemaker_mpi_num_of_processes_per_host"
"""The number of ranks on each instance, for all launchers (sagemaker-training 5.1.4, runner.py)."""

MPI_ENABLED = "sagemaker_mpi_enabled"
_MPI_OPTIONS = "sagemaker_mpi_custom_mpi_options"
_TORCH_DISTRIBUTED = "sagemaker_torch_distributed_enabled"
_PYTORCH_DDP = "sagemaker_pytorch_ddp_enabled"
_DATA_PARALLEL = "sagemaker_distributed_dataparallel_enabled"
_DATA_PARALLEL_OPTIONS = "sagemaker_distributed_dataparallel_custom_mpi_options"
_MODEL_PARALLEL = "mp_parameters"
_PARAMETER_SERVER = "sagemaker_parameter_server_enabled"
_MIRRORED = "sagemaker_multi_worker_mirrored_strategy_enabled"
_INSTANCE_TYPE = "sagemaker_instance_type"
_GROUPS = "sagemaker_distribution_instance_groups"


def make_distribution_parameters(
    spec: Spec, block: SageMaker, framework: Framework, distribution: Distribution
) -> dict[str, JSON]:
    """Return the toolkit's hyperparameters by name, before encoding."""
    if framework.name == "TensorFlow":
        value = _make_general_parameters(block, distribution)
    elif framework.name == "PyTorch":
        value = _make_pytorch_parameters(block, _rewrite_ddp(distribution))
    else:
        value = _make_hugging_face_parameters(block, distribution)
    return {**value, **_make_process_count(spec, distribution)}


def has_separate_worlds(spec: Spec) -> bool:
    """Whether each instance group starts ranks in a world of its own.

    With torchDistributed, and for HuggingFace with pytorchDdp, the SDK doesn't send the selected group. Then the
    toolkit uses each host's own group (sagemaker-training 5.1.4, environment.py, get_distribution_instance_groups).
    """
    block = get_sagemaker_block(spec)
    distribution, framework = choose_distribution(spec), block.framework
    if distribution is None or framework is None or not uses_some_instance_groups(block):
        return False
    return _GROUPS not in make_distribution_parameters(spec, block, framework, distribution)


def _rewrite_ddp(distribution: Distribution) -> Distribution:
    # Since 2.221, the SDK's PyTorch estimator replaces pytorchddp by smdistributed. Hugging Face's estimator doesn't.
    ddp = distribution.pytorch_ddp
    if ddp is None:
        return distribution
    data_parallel = DataParallel(enabled=ddp.enabled, custom_mpi_options=ddp.custom_mpi_options)
    return distribution.model_copy(update={"pytorch_ddp": None, "data_parallel": data_parallel})


def _make_pytorch_parameters(block: SageMaker, distribution: Distribution) -> dict[str, JSON]:
    if not _uses_torch_distributed(distribution):
        return _make_general_parameters(block, distribution)
    value = _make_general_parameters(block, distribution) if _uses_smdistributed(distribution) else {}
    return {**value, _TORCH_DISTRIBUTED: True, **_make_instance_type(block)}


def _make_hugging_face_parameters(block: SageMaker, distribution: Distribution) -> dict[str, JSON]:
    ddp = distribution.pytorch_ddp
    if ddp is not None and ddp.enabled:
        return {_PYTORCH_DDP: True, **_make_instance_type(block)}
    if ddp is None and _uses_torch_distributed(distribution):
        return {_TORCH_DISTRIBUTED: True, **_make_instance_type(block)}
    return _make_general_parameters(block, distribution)


def _make_general_parameters(block: SageMaker, distribution: Distribution) -> dict[str, JSON]:
    fields: dict[str, JSON] = {}
    groups = list_rank_instance_groups(block)
    if groups:
        fields[_GROUPS] = [group.name for group in groups]
    if distribution.parameter_server is not None:
        fields[_PARAMETER_SERVER] = distribution.parameter_server.enabled
    if distribution.mpi is not None:
        fields[MPI_ENABLED] = distribution.mpi.enabled
        fields[_MPI_OPTIONS] = distribution.mpi.custom_mpi_options
    if _uses_smdistributed(distribution):
        fields.update(_make_smdistributed_parameters(block, distribution))
    if distribution.multi_worker_mirrored is not None:
        fields[_MIRRORED] = distribution.multi_worker_mirrored.enabled
    return fields


def _make_smdistributed_parameters(block: SageMaker, distribution: Distribution) -> dict[str, JSON]:
    """Return the SDK's hyperparameters for smdistributed."""
    model, data = distribution.model_parallel, distribution.data_parallel
    # For several instance groups, the SDK sets the type to null.
    fields: dict[str, JSON] = {_DATA_PARALLEL: data is not None and data.enabled, _INSTANCE_TYPE: block.instance_type}
    if data is not None and data.enabled:
        fields[_DATA_PARALLEL_OPTIONS] = data.custom_mpi_options
    if model is not None and model.enabled and model.parameters:
        fields[_MODEL_PARALLEL] = model.parameters
    return fields


def _make_process_count(spec: Spec, distribution: Distribution) -> dict[str, JSON]:
    """Return the number of ranks on each instance, if the job sets it and the toolkit starts the ranks."""
    mpi, data, ddp = distribution.mpi, distribution.data_parallel, distribution.pytorch_ddp
    mpi_procs = mpi.processes_per_host if mpi is not None else None
    if mpi_procs is not None:
        return {PROCESSES: mpi_procs}
    options = (mpi, data, ddp, distribution.torch_distributed)
    starts_ranks = any(option is not None and option.enabled for option in options)
    procs = get_explicit_procs_per_node(spec)
    return {PROCESSES: procs} if starts_ranks and procs is not None else {}


def _uses_torch_distributed(distribution: Distribution) -> bool:
    return distribution.torch_distributed is not None and distribution.torch_distributed.enabled


def _uses_smdistributed(distribution: Distribution) -> bool:
    return distribution.data_parallel is not None or distribution.model_parallel is not None


def _make_instance_type(block: SageMaker) -> dict[str, JSON]:
    return {} if block.instance_type is None else {_INSTANCE_TYPE: block.instance_type}
