"""The part `storage` of the operator's configuration: what pods ask for their files."""

from pydantic import Field

from muster.api.config.sagemaker import Url
from muster.api.spec.model import Model


class StorageConfig(Model):
    """Where S3 is for pods."""

    s3_endpoint: Url | None = Field(default=None, description="Instead of Amazon S3.")
