"""`spec.sagemaker.distribution` as types: how SageMaker's toolkit starts the ranks."""

from typing import Annotated

from pydantic import Field

from muster.api.spec.model import KubernetesObject, Model

_ENABLED = "false: muster passes the option to the toolkit as disabled, as the SageMaker SDK does."

MpiOptions = Annotated[str, Field(max_length=2500)]


class Switch(Model):
    """A strategy that has no settings."""

    enabled: bool = Field(default=True, description=_ENABLED)


class PytorchDdp(Model):
    """The SDK's `pytorchddp`. Except for HuggingFace, SDK 2.221 and newer use smdistributed's data parallel for it."""

    enabled: bool = Field(default=True, description=_ENABLED)
    custom_mpi_options: MpiOptions = Field(
        default="", description="Options for the mpirun that starts the ranks; not for HuggingFace."
    )


class DataParallel(Model):
    """SageMaker's distributed data parallel library (SMDDP)."""

    enabled: bool = Field(default=True, description=_ENABLED)
    custom_mpi_options: MpiOptions = Field(default="", description="Options for the mpirun that starts the ranks.")


class ModelParallel(Model):
    """SageMaker's model parallel library: v1 together with mpi, v2 together with torchDistributed."""

    enabled: bool = Field(default=True, description=_ENABLED)
    parameters: KubernetesObject = Field(
        default_factory=dict,
        description="The library's parameters by its own names: tensor_parallel_degree, pipeline_parallel_degree, "
        "microbatches, ddp, hybrid_shard_degree, ...",
    )


class SageMakerMpi(Model):
    """mpirun, which SageMaker's toolkit runs on the first instance."""

    enabled: bool = Field(default=True, description=_ENABLED)
    processes_per_host: int | None = Field(
        default=None,
        description="The number of ranks on each instance; by default procsPerNode, or one per GPU or Neuron core if "
        "procsPerNode is Auto.",
        ge=1,
        le=128,
    )
    custom_mpi_options: MpiOptions = Field(default="", description="More options for mpirun.")


class Distribution(Model):
    """The distribution that muster passes to SageMaker's toolkit; it replaces `launcher`."""

    torch_distributed: Switch | None = Field(default=None, description="torchrun, on GPUs and Trainium.")
    pytorch_ddp: PytorchDdp | None = Field(default=None, description="The SDK's pytorchddp.")
    data_parallel: DataParallel | None = Field(default=None, description="The SDK's smdistributed.dataparallel.")
    model_parallel: ModelParallel | None = Field(default=None, description="The SDK's smdistributed.modelparallel.")
    mpi: SageMakerMpi | None = Field(default=None, description="mpirun.")
    parameter_server: Switch | None = Field(default=None, description="TensorFlow's parameter servers.")
    multi_worker_mirrored: Switch | None = Field(
        default=None, description="TensorFlow's MultiWorkerMirroredStrategy, from 2.9 on."
    )
    instance_group: str | None = Field(
        default=None,
        description="The group of instanceGroups on which the ranks run.",
        min_length=1,
        max_length=64,
    )
