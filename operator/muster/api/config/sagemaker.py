"""The part `sagemaker` of the operator's configuration: where SageMaker is for jobs that don't say it."""

from typing import Annotated

from pydantic import Field

from muster.api.spec.model import Model
from muster.api.spec.sagemaker.spec import REGION_PATTERN

Url = Annotated[str, Field(pattern=r"^https?://[^/?#\s@]+/?$", max_length=512)]


class AwsEndpoints(Model):
    """What is asked instead of AWS' own services. Not a job's to say: it would send the operator anywhere."""

    sagemaker: Url | None = Field(default=None, description="Instead of https://api.sagemaker.<region>.amazonaws.com.")
    sts: Url | None = Field(default=None, description="Instead of AWS STS.")
    s3: Url | None = Field(default=None, description="Instead of Amazon S3.")
    logs: Url | None = Field(default=None, description="Instead of Amazon CloudWatch Logs.")


class SageMakerConfig(Model):
    """Where SageMaker is."""

    region: str | None = Field(
        default=None,
        description="The AWS region of jobs that name none; unset: they have to.",
        max_length=32,
        pattern=REGION_PATTERN,
    )
    endpoints: AwsEndpoints = Field(default_factory=AwsEndpoints, description="Other places than AWS' own.")
