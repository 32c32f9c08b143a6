"""Types of `spec.sagemaker` that say on what, and under which limits, SageMaker runs the job."""

from typing import Annotated, Literal

from pydantic import Field

from muster.api.spec.model import Model

INSTANCE_TYPE_PATTERN = r"^ml[.][a-z0-9-]+[.][a-z0-9]+$"

InstanceType = Annotated[str, Field(min_length=1, max_length=64, pattern=INSTANCE_TYPE_PATTERN)]

MAX_RUN_SECONDS = 28 * 24 * 3600
"""Amazon SageMaker Developer Guide, "Amazon SageMaker AI quotas": a training job runs 28 days at most."""

MAX_KEEP_ALIVE_SECONDS = 21_600
"""KeepAlivePeriodInSeconds in botocore's service model of 2017-07-24."""

MAX_INSTANCE_GROUPS = 5
MAX_VOLUME_GB = 16_384


class InstanceGroup(Model):
    """Instances of one type in a job of several."""

    name: str = Field(description="The group's name.", min_length=1, max_length=64)
    instance_type: InstanceType = Field(description="Their type: ml.p4d.24xlarge.")
    instance_count: int = Field(description="How many.", ge=1, le=10000)


class Spot(Model):
    """Spot instances: cheaper, and taken away at times; SageMaker starts the job again when it has others."""

    max_wait_seconds: int | None = Field(
        default=None,
        description="How long the job may take with all its waiting, at least maxRunSeconds; unset: maxRunSeconds.",
        ge=1,
        le=MAX_RUN_SECONDS,
    )


class RetryPolicy(Model):
    """SageMaker's own retries, after its internal errors."""

    attempts: int = Field(description="How often.", ge=1, le=30)


class Vpc(Model):
    """The job's network interfaces in your VPC."""

    subnets: Annotated[tuple[Annotated[str, Field(min_length=1, max_length=32)], ...], Field(max_length=16)] = Field(
        description="Its subnets: subnet-0123."
    )
    security_group_ids: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=32)], ...], Field(max_length=5)
    ] = Field(description="Their security groups: sg-0123.")


class ImageRepository(Model):
    """Where the image comes from when that isn't Amazon ECR."""

    access: Literal["Platform", "Vpc"] = Field(
        default="Vpc", description="Platform: Amazon ECR. Vpc: a registry in the job's VPC."
    )
    credentials_provider_arn: str | None = Field(
        default=None,
        description="The AWS Lambda function that gives the registry's credentials.",
        min_length=1,
        max_length=2048,
    )


class UltraServer(Model):
    """A part of the job's instances and the UltraServer that they lie on."""

    ultra_server_id: str | None = Field(default=None, description="The UltraServer; unset: any.", max_length=256)
    instance_count: int = Field(description="How many instances.", ge=0, le=10000)


class Placement(Model):
    """How the job's instances lie on UltraServers of a training plan."""

    multiple_jobs: bool | None = Field(default=None, description="Whether other jobs may share them.")
    ultra_servers: Annotated[tuple[UltraServer, ...], Field(max_length=10)] = Field(
        default=(), description="Which instances lie where."
    )


class Experiment(Model):
    """The SageMaker experiment that the training job becomes a part of."""

    experiment_name: str | None = Field(default=None, description="The experiment.", max_length=120)
    trial_name: str | None = Field(default=None, description="The trial.", max_length=120)
    trial_component_display_name: str | None = Field(
        default=None, description="What the training job is called there.", max_length=120
    )
    run_name: str | None = Field(default=None, description="The run.", max_length=120)
