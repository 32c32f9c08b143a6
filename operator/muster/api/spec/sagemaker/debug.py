"""`spec.sagemaker.debugger`, `profiler` and `tensorBoard` as types."""

from typing import Annotated, Literal

from pydantic import Field

from muster.api.s3_uri import MAX_CHARS
from muster.api.spec.model import Model

MAX_RULES = 20

S3Folder = Annotated[str, Field(min_length=1, max_length=MAX_CHARS)]
Settings = Annotated[dict[str, Annotated[str, Field(max_length=256)]], Field(max_length=20)]
"""Names and values of settings of SageMaker Debugger and of SageMaker's profiler."""

ContainerPath = Annotated[str, Field(min_length=1, max_length=4096)]


class Collection(Model):
    """Tensors that SageMaker Debugger saves together."""

    name: str = Field(
        description="The collection's name: losses, weights, gradients, ...", min_length=1, max_length=256
    )
    parameters: Settings = Field(
        default_factory=dict,
        description="Which tensors the collection saves, and how often: save_interval, include_regex, ...",
    )


class DebugRule(Model):
    """A rule about the job's tensors or metrics, which SageMaker evaluates in a separate processing job."""

    name: str = Field(description="The rule's name, which is unique in the job.", min_length=1, max_length=256)
    image: str | None = Field(
        default=None,
        description="The image that evaluates the rule; by default SageMaker's image for its built-in rules.",
        min_length=1,
        max_length=255,
    )
    instance_type: str | None = Field(
        default=None,
        description="The type of the instance that evaluates the rule; by default SageMaker chooses it.",
        max_length=64,
    )
    volume_size_gb: int | None = Field(
        default=None, description="The disk size of that instance, in GB.", ge=1, le=16384
    )
    local_path: ContainerPath | None = Field(
        default=None, description="The folder to which the rule's container writes."
    )
    s3: S3Folder | None = Field(default=None, description="The folder in Amazon S3 for the rule's output.")
    parameters: Annotated[dict[str, Annotated[str, Field(max_length=256)]], Field(max_length=100)] = Field(
        default_factory=dict, description="The rule's parameters. rule_to_invoke names a built-in rule."
    )


class Debugger(Model):
    """SageMaker Debugger."""

    hook: Literal["Auto", "Enabled", "Disabled"] = Field(
        default="Auto",
        description="Whether SageMaker Debugger saves tensors. Auto: as with the SageMaker SDK, Enabled if the region "
        "has Debugger and Debugger supports the job.",
    )
    s3: S3Folder | None = Field(
        default=None, description="The folder in Amazon S3 for the tensors; by default the job's output."
    )
    local_path: ContainerPath | None = Field(
        default=None, description="The folder of the container to which the hook writes the tensors."
    )
    parameters: Settings = Field(default_factory=dict, description="Parameters of the hook.")
    collections: Annotated[tuple[Collection, ...], Field(max_length=20)] = Field(
        default=(), description="The collections of tensors that the hook saves."
    )
    rules: Annotated[tuple[DebugRule, ...], Field(max_length=MAX_RULES)] = Field(
        default=(), description="Rules about the tensors."
    )


class Profiler(Model):
    """SageMaker's profiler, which measures the utilization of the instances."""

    mode: Literal["Auto", "Enabled", "Disabled", "Unset"] = Field(
        default="Auto",
        description="Auto: as with the SageMaker SDK, Enabled if the region and the instances have the profiler. "
        "Disabled: the request disables the profiler. Unset: the request omits the profiler.",
    )
    s3: S3Folder | None = Field(
        default=None, description="The folder in Amazon S3 for the profiles; by default the job's output."
    )
    interval_milliseconds: Literal[100, 200, 500, 1000, 5000, 60000] | None = Field(
        default=None, description="The interval of the profiler's measurements; by default SageMaker's 500."
    )
    parameters: Settings = Field(
        default_factory=dict, description="Parameters for the profiling of the framework's operations."
    )
    rules: Annotated[tuple[DebugRule, ...], Field(max_length=MAX_RULES)] = Field(
        default=(), description="Rules about the profile."
    )


class TensorBoard(Model):
    """TensorBoard data, which SageMaker uploads to Amazon S3 while the job runs."""

    s3: S3Folder = Field(description="The folder in Amazon S3 for the data.")
    local_path: ContainerPath | None = Field(
        default=None, description="The folder to which the ranks write the data; by default /opt/ml/output/tensorboard."
    )
