"""The types of `spec.inputs`, `spec.checkpoint` and `spec.output`."""

from typing import Annotated, Literal

from pydantic import Field

from muster.api.s3_uri import MAX_CHARS as MAX_URI_CHARS
from muster.api.spec.model import Model
from muster.api.spec.sagemaker.channels import ChannelOptions


class HostPath(Model):
    """A folder of the Kubernetes node."""

    path: str = Field(description="The folder's absolute path.", min_length=1, max_length=1024)


class Claim(Model):
    """A PersistentVolumeClaim in the job's namespace."""

    claim_name: str = Field(description="The claim's name.", min_length=1, max_length=253)


class Nfs(Model):
    """A folder of an NFS server."""

    server: str = Field(description="The server's name or address.", min_length=1, max_length=253)
    path: str = Field(
        description="The absolute path of a folder that the server exports.", min_length=1, max_length=1024
    )


class ConfigMapFiles(Model):
    """The entries of a ConfigMap as files."""

    name: str = Field(description="The ConfigMap's name.", min_length=1, max_length=253)


class SecretFiles(Model):
    """The entries of a Secret as files."""

    secret_name: str = Field(description="The Secret's name.", min_length=1, max_length=253)


class Volume(Model):
    """The storage of a folder: exactly one of its fields is set."""

    host_path: HostPath | None = Field(
        default=None, description="A folder of the Kubernetes node that the pod runs on."
    )
    persistent_volume_claim: Claim | None = Field(default=None, description="A PersistentVolumeClaim.")
    nfs: Nfs | None = Field(default=None, description="A folder of an NFS server.")
    config_map: ConfigMapFiles | None = Field(default=None, description="A ConfigMap's entries, read-only.")
    secret: SecretFiles | None = Field(default=None, description="A Secret's entries, read-only.")


S3Folder = Annotated[str, Field(min_length=1, max_length=MAX_URI_CHARS)]
"""A folder in Amazon S3: s3://bucket/prefix."""


class S3Input(Model):
    """Objects in Amazon S3 that muster downloads before the ranks start."""

    uri: str = Field(
        description="s3://bucket/prefix: muster downloads all objects whose keys have this prefix, or the object with "
        "this key.",
        min_length=1,
        max_length=MAX_URI_CHARS,
    )
    distribution: Literal["FullyReplicated", "ShardedByS3Key"] = Field(
        default="FullyReplicated",
        description="FullyReplicated: every node gets all objects. ShardedByS3Key: every node gets a part of the "
        "objects.",
    )


class Input(Model):
    """A channel: data in the folder /opt/ml/input/data/<name>. Set one of volume, s3 and sagemaker.fileSystem."""

    name: str = Field(
        description="The channel's name. The variable SM_CHANNEL_<NAME> has its path, /opt/ml/input/data/<name>.",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$",
        min_length=1,
        max_length=64,
    )
    content_type: str | None = Field(
        default=None, description="The data's media type, such as image/png.", max_length=256
    )
    volume: Volume | None = Field(default=None, description="The volume that holds the data.")
    s3: S3Input | None = Field(default=None, description="The data's location in Amazon S3.")
    sagemaker: ChannelOptions | None = Field(default=None, description="Channel options that only SageMaker has.")


class Checkpoint(Model):
    """Storage for the checkpoints, which the ranks write to /opt/ml/checkpoints (MUSTER_CHECKPOINT_DIR)."""

    volume: Volume | None = Field(default=None, description="The volume for the checkpoints.")
    s3: S3Folder | None = Field(
        default=None,
        description="The folder in Amazon S3 for the checkpoints. muster downloads it before the ranks start and "
        "syncs it while they run. Without s3 and volume, the checkpoints are lost when the job ends.",
    )


class Output(Model):
    """Storage for the folders /opt/ml/model (SM_MODEL_DIR) and /opt/ml/output (SM_OUTPUT_DIR): either volume or s3."""

    volume: Volume | None = Field(
        default=None,
        description="The volume for the results; muster adds the folders <job>/model and <job>/output. "
        "`muster run` stores the results in the run's folder instead.",
    )
    s3: S3Folder | None = Field(
        default=None,
        description="The folder in Amazon S3 for the results; muster adds the folders <job>/model and <job>/output, "
        "and uploads the results when the ranks have ended.",
    )
