"""The field `storage` of the operator's configuration: where pods fetch their files."""

from pydantic import Field

from muster.api.model import Model
from muster.api.sagemaker_config import Url


class StorageConfig(Model):
    """Where pods reach S3."""

    s3_endpoint: Url | None = Field(default=None, description="The endpoint that replaces Amazon S3.")
