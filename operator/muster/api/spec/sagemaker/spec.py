"""`spec.sagemaker` as types: the settings of a job that only Amazon SageMaker has."""

from typing import Annotated, Literal

from pydantic import Field

from muster.api.s3_uri import MAX_CHARS
from muster.api.spec.model import Model
from muster.api.spec.sagemaker.channels import InputMode
from muster.api.spec.sagemaker.debug import Debugger, Profiler, TensorBoard
from muster.api.spec.sagemaker.distribution import Distribution
from muster.api.spec.sagemaker.framework import Framework
from muster.api.spec.sagemaker.resources import (
    MAX_INSTANCE_GROUPS,
    MAX_KEEP_ALIVE_SECONDS,
    MAX_RUN_SECONDS,
    MAX_VOLUME_GB,
    Experiment,
    ImageRepository,
    InstanceGroup,
    InstanceType,
    Placement,
    RetryPolicy,
    Spot,
    Vpc,
)

ROLE_PATTERN = r"^arn:aws[a-z-]*:iam::[0-9]{12}:role/[a-zA-Z0-9+=,.@_/-]+$"
REGION_PATTERN = r"^[a-z]{2,4}(-[a-z]+)+-[0-9]$"

RoleArn = Annotated[str, Field(min_length=20, max_length=2048, pattern=ROLE_PATTERN)]
KmsKey = Annotated[str, Field(min_length=1, max_length=2048, pattern=r"^[a-zA-Z0-9:/_-]+$")]
Argument = Annotated[str, Field(max_length=256)]
Toggle = Literal["Enabled", "Disabled"]

MAX_TAGS = 50
MAX_RAW_HYPERPARAMETERS = 100


class SageMaker(Model):
    """Settings of the job that only Amazon SageMaker has."""

    region: str | None = Field(
        default=None,
        description="The AWS region; unset: the operator's.",
        max_length=32,
        pattern=REGION_PATTERN,
    )
    role: RoleArn | None = Field(
        default=None,
        description="The ARN of the IAM role of the training job: it reads the inputs and writes the output. Required.",
    )
    assume_role_arn: RoleArn | None = Field(
        default=None,
        description="The role that muster assumes to create the job, for another account; unset: the operator's role.",
    )
    instance_type: InstanceType | None = Field(
        default=None, description="The type of the nodes: ml.p4d.24xlarge. This or instanceGroups."
    )
    instance_groups: Annotated[tuple[InstanceGroup, ...], Field(max_length=MAX_INSTANCE_GROUPS)] = Field(
        default=(), description="Nodes of several instance types; spec.nodes is their total."
    )
    volume_size_gb: int = Field(default=30, description="The disk size of each instance.", ge=1, le=MAX_VOLUME_GB)
    volume_kms_key: KmsKey | None = Field(default=None, description="The key that encrypts the disks.")
    keep_alive_seconds: int | None = Field(
        default=None,
        description="How long SageMaker keeps the instances for the next job, in a warm pool; not with spot.",
        ge=1,
        le=MAX_KEEP_ALIVE_SECONDS,
    )
    training_plan_arn: str | None = Field(
        default=None,
        description="The training plan that has the instances.",
        min_length=50,
        max_length=2048,
        pattern=r"^arn:aws[a-z-]*:sagemaker:[a-z0-9-]*:[0-9]{12}:training-plan/.+$",
    )
    placement: Placement | None = Field(default=None, description="How the instances are placed on UltraServers.")
    framework: Framework | None = Field(
        default=None,
        description="SageMaker's image of a framework, with its toolkit. Unset: spec.image, without the toolkit.",
    )
    start: Literal["Auto", "Toolkit", "Container", "Channels"] = Field(
        default="Auto",
        description="What runs the command. Toolkit: SageMaker's training toolkit in the image, with spec.source. "
        "Container: the container itself. Channels: the container; it gets the code and muster's start script as "
        "channels, as with ModelTrainer of SDK 3. Auto: Toolkit with framework, else Container.",
    )
    container_entrypoint: Annotated[tuple[Argument, ...], Field(max_length=100)] = Field(
        default=(),
        description="The container's entry point, instead of the one that muster derives from command; together with "
        "containerArguments it must equal command.",
    )
    container_arguments: Annotated[tuple[Argument, ...], Field(max_length=100)] = Field(
        default=(), description="The arguments after containerEntrypoint."
    )
    distribution: Distribution | None = Field(
        default=None, description="How SageMaker's toolkit starts the ranks; unset: as launcher says."
    )
    raw_hyperparameters: Annotated[
        dict[str, Annotated[str, Field(max_length=2500)]], Field(max_length=MAX_RAW_HYPERPARAMETERS)
    ] = Field(
        default_factory=dict,
        description="Hyperparameters that muster sends unchanged, such as lists and null as JSON. muster encodes "
        "those of spec.hyperparameters as the SageMaker SDK does.",
    )
    container_log_level: int = Field(default=20, description="The toolkit's log level, as Python's.", ge=0, le=50)
    input_mode: InputMode = Field(default="File", description="The default input mode of channels.")
    metrics_time_series: Toggle | None = Field(
        default=None, description="Whether SageMaker keeps metrics as time series; unset: as the SageMaker SDK does."
    )
    max_run_seconds: int = Field(default=86400, description="How long the training may take.", ge=1, le=MAX_RUN_SECONDS)
    max_pending_seconds: int | None = Field(
        default=None, description="How long the job may wait for instances.", ge=1800, le=MAX_RUN_SECONDS
    )
    spot: Spot | None = Field(default=None, description="Run on spot instances.")
    retry: RetryPolicy | None = Field(default=None, description="SageMaker's own retries, after its internal errors.")
    vpc: Vpc | None = Field(default=None, description="Connect the job to your VPC.")
    encrypt_inter_container_traffic: bool = Field(default=False, description="Encrypt the traffic between the nodes.")
    network_isolation: bool = Field(default=False, description="Block the ranks' network, except between the nodes.")
    output_kms_key: KmsKey | None = Field(default=None, description="The key that encrypts the output.")
    output_compression: Literal["Gzip", "None"] | None = Field(
        default=None, description="How the output is compressed; unset: SageMaker's default, Gzip."
    )
    code_location: Annotated[str, Field(min_length=1, max_length=MAX_CHARS)] | None = Field(
        default=None, description="The folder in Amazon S3 for the code; unset: the output's bucket."
    )
    checkpoint_path: Annotated[str, Field(min_length=1, max_length=4096)] | None = Field(
        default=None, description="The ranks' folder for checkpoints; unset: /opt/ml/checkpoints."
    )
    tags: Annotated[dict[str, Annotated[str, Field(max_length=256)]], Field(max_length=MAX_TAGS)] = Field(
        default_factory=dict, description="Tags of the training job. muster adds its own."
    )
    debugger: Debugger = Field(default_factory=Debugger, description="SageMaker Debugger.")
    profiler: Profiler = Field(default_factory=Profiler, description="SageMaker's profiler.")
    tensor_board: TensorBoard | None = Field(default=None, description="Keep TensorBoard data.")
    experiment: Experiment | None = Field(default=None, description="The experiment that the job is a part of.")
    image_repository: ImageRepository | None = Field(
        default=None, description="Where the image comes from if not from Amazon ECR."
    )
    remote_debug: Toggle | None = Field(default=None, description="Whether users may connect to the containers.")
    infra_check: Toggle | None = Field(default=None, description="Whether SageMaker checks the instances first.")
    session_tag_chaining: Toggle | None = Field(default=None, description="Whether sessions pass their tags on.")
    rank_reports: Literal["Auto", "On", "Off"] = Field(
        default="Auto",
        description="Whether the ranks report to muster, through the job's log. Auto: On for torchrun and MPI if "
        "muster packs the code. Off: the request is exactly the SageMaker SDK's.",
    )
