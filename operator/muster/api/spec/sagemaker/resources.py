"""Types of `spec.sagemaker` for resources and limits: instances, VPC, retries."""

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
    """Spot instances: cheaper, but AWS may reclaim them; SageMaker restarts the job when it has others."""

    max_wait_seconds: int | None = Field(
        default=None,
        description="How long the job may take, waiting included, at least maxRunSeconds; unset: maxRunSeconds.",
        ge=1,
        le=MAX_RUN_SECONDS,
    )


class RetryPolicy(Model):
    """SageMaker's own retries, after its internal errors."""

    attempts: int = Field(description="The maximum number of retries.", ge=1, le=30)


class Vpc(Model):
    """The job's network interfaces in your VPC."""

    subnets: Annotated[tuple[Annotated[str, Field(min_length=1, max_length=32)], ...], Field(max_length=16)] = Field(
        description="Its subnets: subnet-0123."
    )
    security_group_ids: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=32)], ...], Field(max_length=5)
    ] = Field(description="Their security groups: sg-0123.")


class ImageRepository(Model):
    """Where the image comes from if not from Amazon ECR."""

    access: Literal["Platform", "Vpc"] = Field(
        default="Vpc", description="Platform: Amazon ECR. Vpc: a registry in the job's VPC."
    )
    credentials_provider_arn: str | None = Field(
        default=None,
        description="The AWS Lambda function that provides the registry's credentials.",
        min_length=1,
        max_length=2048,
    )


class UltraServer(Model):
    """A number of the job's instances and their UltraServer."""

    ultra_server_id: str | None = Field(default=None, description="The UltraServer; unset: any.", max_length=256)
    instance_count: int = Field(description="How many instances.", ge=0, le=10000)


class Placement(Model):
    """How the job's instances are placed on UltraServers of a training plan."""

    multiple_jobs: bool | None = Field(default=None, description="Whether other jobs may share them.")
    ultra_servers: Annotated[tuple[UltraServer, ...], Field(max_length=10)] = Field(
        default=(), description="The number of instances on each UltraServer."
    )


class Experiment(Model):
    """The SageMaker experiment to which the training job belongs."""

    experiment_name: str | None = Field(default=None, description="The experiment.", max_length=120)
    trial_name: str | None = Field(default=None, description="The trial.", max_length=120)
    trial_component_display_name: str | None = Field(
        default=None, description="The training job's name in the experiment.", max_length=120
    )
    run_name: str | None = Field(default=None, description="The run.", max_length=120)
