"""What the ranks read and what they leave, as types: channels, snapshots and results."""

from typing import Annotated, Literal

from pydantic import Field

from muster.api.model import Model
from muster.api.s3_uri import MAX_CHARS as MAX_URI_CHARS
from muster.api.sagemaker_channels import ChannelOptions


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
    """Where a folder's content lives: exactly one of its fields."""

    host_path: HostPath | None = Field(default=None, description="A folder of the node that the rank runs on.")
    persistent_volume_claim: Claim | None = Field(default=None, description="A PersistentVolumeClaim.")
    nfs: Nfs | None = Field(default=None, description="A folder of an NFS server.")
    config_map: ConfigMapFiles | None = Field(default=None, description="A ConfigMap's entries, to read only.")
    secret: SecretFiles | None = Field(default=None, description="A Secret's entries, to read only.")


S3Folder = Annotated[str, Field(min_length=1, max_length=MAX_URI_CHARS)]
"""A folder in Amazon S3: s3://bucket/prefix."""


class S3Input(Model):
    """Objects of Amazon S3, fetched before the ranks start."""

    uri: str = Field(
        description="s3://bucket/prefix: all objects whose keys begin so, or the one object of that key.",
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
    volume: Volume | None = Field(default=None, description="A volume in which the data lies.")
    s3: S3Input | None = Field(default=None, description="Where the data lies in Amazon S3.")
    sagemaker: ChannelOptions | None = Field(default=None, description="What only Amazon SageMaker can do with it.")


class Checkpoint(Model):
    """Snapshots that outlive the ranks, which see them at /opt/ml/checkpoints (MUSTER_CHECKPOINT_DIR)."""

    volume: Volume | None = Field(default=None, description="A volume in which the snapshots lie.")
    s3: S3Folder | None = Field(
        default=None,
        description="A folder in Amazon S3 in which the snapshots lie: fetched before the ranks start, kept up to date "
        "while they run. With neither this nor volume they end with the job.",
    )


class Output(Model):
    """What the job leaves: /opt/ml/model (SM_MODEL_DIR) and /opt/ml/output (SM_OUTPUT_DIR). One of volume and s3."""

    volume: Volume | None = Field(
        default=None,
        description="A volume that keeps it, in the folders <job>/model and <job>/output. "
        "`muster run` keeps it in the run's folder.",
    )
    s3: S3Folder | None = Field(
        default=None,
        description="A folder in Amazon S3 that keeps it, below <job>/model and <job>/output: uploaded when the ranks "
        "have ended.",
    )
