"""`spec.inputs[].sagemaker` as types: channel options that only SageMaker has."""

from typing import Annotated, Literal

from pydantic import Field

from muster.api.spec.model import Model

InputMode = Literal["File", "Pipe", "FastFile"]

GroupName = Annotated[str, Field(min_length=1, max_length=64)]


class FileSystem(Model):
    """A directory on Amazon EFS or FSx for Lustre, which SageMaker mounts: the job needs a VPC that reaches it."""

    type: Literal["EFS", "FSxLustre"] = Field(description="The kind of file system.")
    id: str = Field(description="The file system: fs-0123456789abcdef0.", max_length=21, pattern=r"^fs-[0-9a-f]{8,}$")
    path: str = Field(description="The folder's path in it, beginning with /.", min_length=1, max_length=4096)
    access: Literal["ReadOnly", "ReadWrite"] = Field(
        default="ReadOnly", description="Whether the ranks may write there."
    )


class ChannelOptions(Model):
    """Channel options that only SageMaker has."""

    file_system: FileSystem | None = Field(
        default=None, description="The data's location, instead of volume and s3: an Amazon file system."
    )
    input_mode: InputMode | None = Field(
        default=None,
        description="File: SageMaker copies the data before the ranks start. FastFile: it streams files when the ranks "
        "open them. Pipe: the ranks read from a pipe. Unset: sagemaker.inputMode.",
    )
    data_type: Literal["S3Prefix", "ManifestFile", "AugmentedManifestFile"] = Field(
        default="S3Prefix", description="What s3.uri names: a key prefix, or a list of objects."
    )
    attribute_names: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=256)], ...], Field(max_length=16)
    ] = Field(default=(), description="The attributes of an AugmentedManifestFile to read.")
    instance_groups: Annotated[tuple[GroupName, ...], Field(max_length=5)] = Field(
        default=(), description="Which of sagemaker.instanceGroups get the data; unset: all."
    )
    compression: Literal["None", "Gzip"] | None = Field(
        default=None, description="How the data is compressed; Pipe mode decompresses it."
    )
    record_wrapper: Literal["None", "RecordIO"] | None = Field(
        default=None, description="Whether each object is wrapped into a RecordIO record."
    )
    shuffle_seed: int | None = Field(
        default=None, description="Shuffle the objects with this seed.", ge=0, le=9_007_199_254_740_991
    )
