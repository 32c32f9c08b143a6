"""`spec.inputs[].sagemaker` as types: channel options that only SageMaker has."""

from typing import Annotated, Literal

from pydantic import Field

from muster.api.spec.model import Model

InputMode = Literal["File", "Pipe", "FastFile"]

GroupName = Annotated[str, Field(min_length=1, max_length=64)]


class FileSystem(Model):
    """A directory on Amazon EFS or FSx for Lustre, which SageMaker mounts. The job's VPC needs access to it."""

    type: Literal["EFS", "FSxLustre"] = Field(description="The kind of file system.")
    id: str = Field(
        description="The file system's id: fs-0123456789abcdef0.", max_length=21, pattern=r"^fs-[0-9a-f]{8,}$"
    )
    path: str = Field(
        description="The folder's path in the file system; it begins with /.", min_length=1, max_length=4096
    )
    access: Literal["ReadOnly", "ReadWrite"] = Field(
        default="ReadOnly", description="Whether the ranks may write to the file system."
    )


class ChannelOptions(Model):
    """Channel options that only SageMaker has."""

    file_system: FileSystem | None = Field(
        default=None, description="The Amazon file system that holds the data, instead of volume and s3."
    )
    input_mode: InputMode | None = Field(
        default=None,
        description="File: SageMaker copies the data before the ranks start. FastFile: it streams files when the ranks "
        "open them. Pipe: the ranks read from a pipe. By default the value of spec.sagemaker.inputMode.",
    )
    data_type: Literal["S3Prefix", "ManifestFile", "AugmentedManifestFile"] = Field(
        default="S3Prefix", description="The meaning of s3.uri: a key prefix, or a file that lists objects."
    )
    attribute_names: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=256)], ...], Field(max_length=16)
    ] = Field(default=(), description="The attributes of an AugmentedManifestFile to read.")
    instance_groups: Annotated[tuple[GroupName, ...], Field(max_length=5)] = Field(
        default=(), description="The groups of spec.sagemaker.instanceGroups that get the data; by default all."
    )
    compression: Literal["None", "Gzip"] | None = Field(
        default=None, description="The compression of the data. With inputMode Pipe, SageMaker decompresses the data."
    )
    record_wrapper: Literal["None", "RecordIO"] | None = Field(
        default=None, description="RecordIO: SageMaker wraps each object into a RecordIO record."
    )
    shuffle_seed: int | None = Field(
        default=None,
        description="The seed with which SageMaker shuffles the objects; by default it doesn't shuffle them.",
        ge=0,
        le=9_007_199_254_740_991,
    )
