"""The types of `spec.sagemaker`: settings that only Amazon SageMaker has."""

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
    """Settings that only Amazon SageMaker has."""

    region: str | None = Field(
        default=None,
        description="The AWS region; by default the operator's.",
        max_length=32,
        pattern=REGION_PATTERN,
    )
    role: RoleArn | None = Field(
        default=None,
        description="The ARN of the training job's IAM role, which needs access to the inputs and the output. With "
        "backend: SageMaker it must be set.",
    )
    assume_role_arn: RoleArn | None = Field(
        default=None,
        description="The role that muster assumes to create the training job, for example in another account; by "
        "default muster uses the operator's role.",
    )
    instance_type: InstanceType | None = Field(
        default=None,
        description="The type of all instances, such as ml.p4d.24xlarge. Set either this or instanceGroups.",
    )
    instance_groups: Annotated[tuple[InstanceGroup, ...], Field(max_length=MAX_INSTANCE_GROUPS)] = Field(
        default=(), description="The instances of a job with several instance types; spec.nodes is their total."
    )
    volume_size_gb: int = Field(
        default=30, description="The disk size of each instance, in GB.", ge=1, le=MAX_VOLUME_GB
    )
    volume_kms_key: KmsKey | None = Field(default=None, description="The key that encrypts the disks.")
    keep_alive_seconds: int | None = Field(
        default=None,
        description="How long SageMaker keeps the instances in a warm pool for the next job; not allowed with spot.",
        ge=1,
        le=MAX_KEEP_ALIVE_SECONDS,
    )
    training_plan_arn: str | None = Field(
        default=None,
        description="The ARN of the training plan that provides the instances.",
        min_length=50,
        max_length=2048,
        pattern=r"^arn:aws[a-z-]*:sagemaker:[a-z0-9-]*:[0-9]{12}:training-plan/.+$",
    )
    placement: Placement | None = Field(default=None, description="The placement of the instances on UltraServers.")
    framework: Framework | None = Field(
        default=None,
        description="The framework whose SageMaker image runs the job, with SageMaker's toolkit. If unset, spec.image "
        "runs the job without the toolkit.",
    )
    start: Literal["Auto", "Toolkit", "Container", "Channels"] = Field(
        default="Auto",
        description="How the command starts. Toolkit: SageMaker's training toolkit in the image runs it on "
        "spec.source. Container: the container runs it. Channels: the container runs it and gets the code and "
        "muster's start script as channels, as with ModelTrainer of the SageMaker SDK 3. Auto: Toolkit if framework "
        "is set, else Container.",
    )
    container_entrypoint: Annotated[tuple[Argument, ...], Field(max_length=100)] = Field(
        default=(),
        description="The container's entry point; by default muster derives it from command. Together with "
        "containerArguments, it must equal command.",
    )
    container_arguments: Annotated[tuple[Argument, ...], Field(max_length=100)] = Field(
        default=(), description="The arguments after containerEntrypoint."
    )
    distribution: Distribution | None = Field(
        default=None, description="How SageMaker's toolkit starts the ranks; by default launcher determines it."
    )
    raw_hyperparameters: Annotated[
        dict[str, Annotated[str, Field(max_length=2500)]], Field(max_length=MAX_RAW_HYPERPARAMETERS)
    ] = Field(
        default_factory=dict,
        description="Hyperparameters that muster sends unchanged, such as JSON lists and null. muster encodes "
        "spec.hyperparameters as the SageMaker SDK does.",
    )
    container_log_level: int = Field(
        default=20, description="The toolkit's log level, as in Python's logging.", ge=0, le=50
    )
    input_mode: InputMode = Field(default="File", description="The default input mode of channels.")
    metrics_time_series: Toggle | None = Field(
        default=None,
        description="Whether SageMaker stores metrics as time series; by default the SageMaker SDK's choice.",
    )
    max_run_seconds: int = Field(default=86400, description="How long the training may take.", ge=1, le=MAX_RUN_SECONDS)
    max_pending_seconds: int | None = Field(
        default=None, description="How long the job may wait for instances.", ge=1800, le=MAX_RUN_SECONDS
    )
    spot: Spot | None = Field(
        default=None, description="Settings for spot instances; by default the job uses on-demand instances."
    )
    retry: RetryPolicy | None = Field(
        default=None, description="SageMaker's retries of the job after internal errors of SageMaker."
    )
    vpc: Vpc | None = Field(default=None, description="The VPC to which SageMaker connects the job.")
    encrypt_inter_container_traffic: bool = Field(
        default=False, description="Whether SageMaker encrypts the traffic between the instances."
    )
    network_isolation: bool = Field(
        default=False, description="Whether SageMaker blocks all network traffic except between the instances."
    )
    output_kms_key: KmsKey | None = Field(default=None, description="The key that encrypts the output.")
    output_compression: Literal["Gzip", "None"] | None = Field(
        default=None, description="How SageMaker compresses the output; by default Gzip."
    )
    code_location: Annotated[str, Field(min_length=1, max_length=MAX_CHARS)] | None = Field(
        default=None, description="The folder in Amazon S3 for the code; by default the root of the output's bucket."
    )
    checkpoint_path: Annotated[str, Field(min_length=1, max_length=4096)] | None = Field(
        default=None, description="The folder to which the ranks write checkpoints; by default /opt/ml/checkpoints."
    )
    tags: Annotated[dict[str, Annotated[str, Field(max_length=256)]], Field(max_length=MAX_TAGS)] = Field(
        default_factory=dict, description="Tags of the training job, in addition to muster's tags."
    )
    debugger: Debugger = Field(default_factory=Debugger, description="Settings of SageMaker Debugger.")
    profiler: Profiler = Field(default_factory=Profiler, description="Settings of SageMaker's profiler.")
    tensor_board: TensorBoard | None = Field(default=None, description="Settings for TensorBoard data.")
    experiment: Experiment | None = Field(
        default=None, description="The SageMaker experiment to which the training job belongs."
    )
    image_repository: ImageRepository | None = Field(
        default=None, description="The registry of the image; by default Amazon ECR."
    )
    remote_debug: Toggle | None = Field(default=None, description="Whether users may connect to the containers.")
    infra_check: Toggle | None = Field(
        default=None, description="Whether SageMaker checks the instances before the training."
    )
    session_tag_chaining: Toggle | None = Field(
        default=None, description="Whether SageMaker passes session tags on to the training job's role."
    )
    rank_reports: Literal["Auto", "On", "Off"] = Field(
        default="Auto",
        description="Whether the ranks report to muster through the training job's log. Auto: On for torchrun and MPI "
        "if muster packs the code. Off: the request equals the SageMaker SDK's.",
    )
