"""The types of `spec.sagemaker` for instances, VPC, retries and experiments."""

from typing import Annotated, Literal

from pydantic import Field

from muster.api.spec.model import Model

INSTANCE_TYPE_PATTERN = r"^ml[.][a-z0-9-]+[.][a-z0-9]+$"

InstanceType = Annotated[str, Field(min_length=1, max_length=64, pattern=INSTANCE_TYPE_PATTERN)]

MAX_RUN_SECONDS = 28 * 24 * 3600
"""The longest training job: 28 days (Amazon SageMaker Developer Guide, "Amazon SageMaker AI quotas")."""

MAX_KEEP_ALIVE_SECONDS = 21_600
"""The maximum of KeepAlivePeriodInSeconds in botocore's service model of 2017-07-24."""

MAX_INSTANCE_GROUPS = 5
MAX_VOLUME_GB = 16_384


class InstanceGroup(Model):
    """The instances of one type, in a job that has several instance types."""

    name: str = Field(description="The group's name.", min_length=1, max_length=64)
    instance_type: InstanceType = Field(description="The type of the group's instances, such as ml.p4d.24xlarge.")
    instance_count: int = Field(description="The number of instances in the group.", ge=1, le=10000)


class Spot(Model):
    """Spot instances cost less, but AWS may reclaim them. SageMaker then restarts the job on other instances."""

    max_wait_seconds: int | None = Field(
        default=None,
        description="How long the job may take, including the time it waits for instances: at least maxRunSeconds, "
        "which is the default.",
        ge=1,
        le=MAX_RUN_SECONDS,
    )


class RetryPolicy(Model):
    """SageMaker's retries of the job after internal errors of SageMaker."""

    attempts: int = Field(description="The maximum number of retries.", ge=1, le=30)


class Vpc(Model):
    """The job's network interfaces in your VPC."""

    subnets: Annotated[tuple[Annotated[str, Field(min_length=1, max_length=32)], ...], Field(max_length=16)] = Field(
        description="The ids of the subnets: subnet-0123."
    )
    security_group_ids: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=32)], ...], Field(max_length=5)
    ] = Field(description="The ids of the security groups: sg-0123.")


class ImageRepository(Model):
    """The registry of the image."""

    access: Literal["Platform", "Vpc"] = Field(
        default="Vpc", description="The registry: Amazon ECR (Platform), or a registry in the job's VPC (Vpc)."
    )
    credentials_provider_arn: str | None = Field(
        default=None,
        description="The AWS Lambda function that provides the registry's credentials.",
        min_length=1,
        max_length=2048,
    )


class UltraServer(Model):
    """An UltraServer, and the number of the job's instances on it."""

    ultra_server_id: str | None = Field(
        default=None, description="The UltraServer's id; by default any UltraServer.", max_length=256
    )
    instance_count: int = Field(description="The number of instances on it.", ge=0, le=10000)


class Placement(Model):
    """The placement of the job's instances on the UltraServers of a training plan."""

    multiple_jobs: bool | None = Field(default=None, description="Whether other jobs may share the UltraServers.")
    ultra_servers: Annotated[tuple[UltraServer, ...], Field(max_length=10)] = Field(
        default=(), description="The number of instances on each UltraServer."
    )


class Experiment(Model):
    """The SageMaker experiment to which the training job belongs."""

    experiment_name: str | None = Field(default=None, description="The experiment's name.", max_length=120)
    trial_name: str | None = Field(default=None, description="The trial's name.", max_length=120)
    trial_component_display_name: str | None = Field(
        default=None, description="The training job's name in the experiment.", max_length=120
    )
    run_name: str | None = Field(default=None, description="The run's name.", max_length=120)
