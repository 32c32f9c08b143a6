"""`spec.sagemaker.debugger`, `profiler` and `tensorBoard` as types."""

from typing import Annotated, Literal

from pydantic import Field

from muster.api.s3_uri import MAX_CHARS
from muster.api.spec.model import Model

MAX_RULES = 20

S3Folder = Annotated[str, Field(min_length=1, max_length=MAX_CHARS)]
Settings = Annotated[dict[str, Annotated[str, Field(max_length=256)]], Field(max_length=20)]
"""Names and values of SageMaker Debugger's settings."""

ContainerPath = Annotated[str, Field(min_length=1, max_length=4096)]


class Collection(Model):
    """Tensors that are saved together."""

    name: str = Field(description="The collection: losses, weights, gradients, ...", min_length=1, max_length=256)
    parameters: Settings = Field(
        default_factory=dict, description="What it saves and how often: save_interval, include_regex, ..."
    )


class DebugRule(Model):
    """A rule that watches the job's tensors or metrics, in a processing job of its own."""

    name: str = Field(description="The rule's name, unique among the job's.", min_length=1, max_length=256)
    image: str | None = Field(
        default=None,
        description="The image that evaluates it; unset: SageMaker's own for its built-in rules.",
        min_length=1,
        max_length=255,
    )
    instance_type: str | None = Field(
        default=None, description="The instance that evaluates it; unset: SageMaker's choice.", max_length=64
    )
    volume_size_gb: int | None = Field(default=None, description="The size of its disk.", ge=1, le=16384)
    local_path: ContainerPath | None = Field(default=None, description="The folder to which its container writes.")
    s3: S3Folder | None = Field(default=None, description="The folder in Amazon S3 for its output.")
    parameters: Annotated[dict[str, Annotated[str, Field(max_length=256)]], Field(max_length=100)] = Field(
        default_factory=dict, description="Its parameters; rule_to_invoke names a built-in rule."
    )


class Debugger(Model):
    """SageMaker Debugger."""

    hook: Literal["Auto", "Enabled", "Disabled"] = Field(
        default="Auto",
        description="Whether tensors are saved. Auto: as the SageMaker SDK does, which is Enabled where Debugger "
        "exists and can work with the job.",
    )
    s3: S3Folder | None = Field(default=None, description="Where tensors are kept; unset: the job's output.")
    local_path: ContainerPath | None = Field(default=None, description="Where the container writes them.")
    parameters: Settings = Field(default_factory=dict, description="Parameters of the hook.")
    collections: Annotated[tuple[Collection, ...], Field(max_length=20)] = Field(
        default=(), description="Tensors that are saved."
    )
    rules: Annotated[tuple[DebugRule, ...], Field(max_length=MAX_RULES)] = Field(
        default=(), description="Rules that watch the tensors."
    )


class Profiler(Model):
    """SageMaker's profiler: how the instances are used."""

    mode: Literal["Auto", "Enabled", "Disabled", "Unset"] = Field(
        default="Auto",
        description="Auto: as the SageMaker SDK does, which is Enabled where the region and the instances have it. "
        "Disabled: the request disables profiling. Unset: the request omits it.",
    )
    s3: S3Folder | None = Field(default=None, description="Where profiles are kept; unset: the job's output.")
    interval_milliseconds: Literal[100, 200, 500, 1000, 5000, 60000] | None = Field(
        default=None, description="How often the instances are measured; unset: SageMaker's 500."
    )
    parameters: Settings = Field(default_factory=dict, description="What of the framework is profiled.")
    rules: Annotated[tuple[DebugRule, ...], Field(max_length=MAX_RULES)] = Field(
        default=(), description="Rules that watch the profile."
    )


class TensorBoard(Model):
    """TensorBoard data, which SageMaker keeps in Amazon S3 while the job runs."""

    s3: S3Folder = Field(description="Where it is kept.")
    local_path: ContainerPath | None = Field(
        default=None, description="Where the ranks write it; unset: /opt/ml/output/tensorboard."
    )
