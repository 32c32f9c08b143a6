"""`spec.sagemaker.distribution` as types: how SageMaker's toolkit starts the ranks."""

from typing import Annotated

from pydantic import Field

from muster.api.spec.model import KubernetesObject, Model

_ENABLED_DESCRIPTION = "false: muster passes the option to the toolkit as disabled, as the SageMaker SDK does."

MpiOptions = Annotated[str, Field(max_length=2500)]


class StrategyWithoutSettings(Model):
    """A strategy that has no settings."""

    enabled: bool = Field(default=True, description=_ENABLED_DESCRIPTION)


class PytorchDdp(Model):
    """The SDK's `pytorchddp`.

    Since version 2.221, the SDK starts it as smdistributed's data parallel library, except with HuggingFace.
    """

    enabled: bool = Field(default=True, description=_ENABLED_DESCRIPTION)
    custom_mpi_options: MpiOptions = Field(
        default="", description="Options for the mpirun that starts the ranks; not for HuggingFace."
    )


class DataParallel(Model):
    """SageMaker's distributed data parallel library (SMDDP)."""

    enabled: bool = Field(default=True, description=_ENABLED_DESCRIPTION)
    custom_mpi_options: MpiOptions = Field(default="", description="Options for the mpirun that starts the ranks.")


class ModelParallel(Model):
    """SageMaker's model parallel library: v1 together with mpi, v2 together with torchDistributed."""

    enabled: bool = Field(default=True, description=_ENABLED_DESCRIPTION)
    parameters: KubernetesObject = Field(
        default_factory=dict,
        description="The library's parameters by its own names: tensor_parallel_degree, pipeline_parallel_degree, "
        "microbatches, ddp, hybrid_shard_degree, ...",
    )


class SageMakerMpi(Model):
    """mpirun, which SageMaker's toolkit runs on the first instance."""

    enabled: bool = Field(default=True, description=_ENABLED_DESCRIPTION)
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

    torch_distributed: StrategyWithoutSettings | None = Field(
        default=None, description="torchrun, on GPUs and Trainium."
    )
    pytorch_ddp: PytorchDdp | None = Field(default=None, description="The SDK's pytorchddp.")
    data_parallel: DataParallel | None = Field(default=None, description="The SDK's smdistributed.dataparallel.")
    model_parallel: ModelParallel | None = Field(default=None, description="The SDK's smdistributed.modelparallel.")
    mpi: SageMakerMpi | None = Field(default=None, description="mpirun.")
    parameter_server: StrategyWithoutSettings | None = Field(
        default=None, description="TensorFlow's parameter servers."
    )
    multi_worker_mirrored: StrategyWithoutSettings | None = Field(
        default=None, description="TensorFlow's MultiWorkerMirroredStrategy, from 2.9 on."
    )
    instance_group: str | None = Field(
        default=None,
        description="The group of instanceGroups on which the ranks run.",
        min_length=1,
        max_length=64,
    )
