"""The field `sagemaker` of the operator's configuration: the default region and AWS endpoints."""

from typing import Annotated

from pydantic import Field

from muster.api.spec.model import Model
from muster.api.spec.sagemaker.spec import REGION_PATTERN

Url = Annotated[str, Field(pattern=r"^https?://[^/?#\s@]+/?$", max_length=512)]


class AwsEndpoints(Model):
    """Endpoints that replace those of AWS. Jobs can't set them, because a job must not redirect the operator."""

    sagemaker: Url | None = Field(default=None, description="The endpoint that the operator uses for Amazon SageMaker.")
    sts: Url | None = Field(default=None, description="The endpoint that the operator uses for AWS STS.")
    s3: Url | None = Field(
        default=None, description="The endpoint to which the operator uploads SageMaker jobs' code, for Amazon S3."
    )
    logs: Url | None = Field(
        default=None, description="The endpoint that the operator uses for Amazon CloudWatch Logs."
    )


class SageMakerConfig(Model):
    """Defaults for SageMaker jobs."""

    region: str | None = Field(
        default=None,
        description="The default AWS region. If it is unset, each job has to name its region.",
        max_length=32,
        pattern=REGION_PATTERN,
    )
    endpoints: AwsEndpoints = Field(default_factory=AwsEndpoints, description="Endpoints that replace those of AWS.")
