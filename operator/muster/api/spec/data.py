"""Types for what the ranks read and write: input channels, checkpoints and output."""

from typing import Annotated, Literal

from pydantic import Field

from muster.api.s3_uri import MAX_CHARS as MAX_URI_CHARS
from muster.api.spec.model import Model
from muster.api.spec.sagemaker.channels import ChannelOptions


class HostPath(Model):
    """A folder of the node."""

    path: str = Field(description="The folder's absolute path.", min_length=1, max_length=1024)


class Claim(Model):
    """A PersistentVolumeClaim of the job's namespace."""

    claim_name: str = Field(description="The claim's name.", min_length=1, max_length=253)


class Nfs(Model):
    """A folder of an NFS server."""

    server: str = Field(description="The server's name or address.", min_length=1, max_length=253)
    path: str = Field(description="The absolute path that the server exports.", min_length=1, max_length=1024)


class ConfigMapFiles(Model):
    """The entries of a ConfigMap as files."""

    name: str = Field(description="The ConfigMap's name.", min_length=1, max_length=253)


class SecretFiles(Model):
    """The entries of a Secret as files."""

    secret_name: str = Field(description="The Secret's name.", min_length=1, max_length=253)


class Volume(Model):
    """The storage of a folder: exactly one of its fields is set."""

    host_path: HostPath | None = Field(default=None, description="A folder of the node that the rank runs on.")
    persistent_volume_claim: Claim | None = Field(default=None, description="A PersistentVolumeClaim.")
    nfs: Nfs | None = Field(default=None, description="A folder of an NFS server.")
    config_map: ConfigMapFiles | None = Field(default=None, description="A ConfigMap's entries, read-only.")
    secret: SecretFiles | None = Field(default=None, description="A Secret's entries, read-only.")


S3Folder = Annotated[str, Field(min_length=1, max_length=MAX_URI_CHARS)]
"""A folder in Amazon S3: s3://bucket/prefix."""


class S3Input(Model):
    """Objects of Amazon S3, downloaded before the ranks start."""

    uri: str = Field(
        description="s3://bucket/prefix: all objects whose keys have this prefix, or the one object with this key.",
        min_length=1,
        max_length=MAX_URI_CHARS,
    )
    distribution: Literal["FullyReplicated", "ShardedByS3Key"] = Field(
        default="FullyReplicated",
        description="FullyReplicated: every node gets all objects. ShardedByS3Key: each node gets its share of them.",
    )


class Input(Model):
    """A channel: data that all ranks find under /opt/ml/input/data/<name>. One of volume, s3, sagemaker.fileSystem."""

    name: str = Field(
        description="The channel's name: SM_CHANNEL_<NAME> and the last part of its path.",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$",
        min_length=1,
        max_length=64,
    )
    content_type: str | None = Field(default=None, description="The data's media type.", max_length=256)
    volume: Volume | None = Field(default=None, description="The volume with the data.")
    s3: S3Input | None = Field(default=None, description="The data's location in Amazon S3.")
    sagemaker: ChannelOptions | None = Field(default=None, description="Options that only Amazon SageMaker has.")


class Checkpoint(Model):
    """Checkpoints that outlive the ranks, which see them at /opt/ml/checkpoints (MUSTER_CHECKPOINT_DIR)."""

    volume: Volume | None = Field(default=None, description="The volume that keeps the checkpoints.")
    s3: S3Folder | None = Field(
        default=None,
        description="A folder in Amazon S3 that keeps the checkpoints. muster downloads it before the ranks start and "
        "syncs it while they run. Without s3 and volume, the checkpoints are lost when the job ends.",
    )


class Output(Model):
    """The job's results: /opt/ml/model (SM_MODEL_DIR) and /opt/ml/output (SM_OUTPUT_DIR). One of volume and s3."""

    volume: Volume | None = Field(
        default=None,
        description="A volume that keeps the results, in the folders <job>/model and <job>/output. "
        "`muster run` keeps them in the run's folder.",
    )
    s3: S3Folder | None = Field(
        default=None,
        description="A folder in Amazon S3 that keeps the results, below <job>/model and <job>/output. muster uploads "
        "them when the ranks have ended.",
    )
