"""ModelTrainers of SDK 3 as users write them, in many combinations. Each comes from a seed and keeps its name."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from muster.api.document import JSON
from sagemaker_sdk.estimator_cases import HYPERPARAMETERS, VPC, Item, Kwargs

ROLE_NAME = "SageMakerRole"
IMAGE = "763104351884.dkr.ecr.us-west-2.amazonaws.com/pytorch-training:2.0.1-gpu-py310"
KEY = "1234abcd-12ab-34cd-56ef-1234567890ab"
PLAN = "arn:aws:sagemaker:us-west-2:111122223333:training-plan/p1"


@dataclass(frozen=True)
class TrainerCase:
    """A ModelTrainer by its arguments, the values of its `with_...` methods, and the inputs of `train`.

    `session` has the arguments of the SDK's Session.
    """

    name: str
    region: str
    session: Kwargs
    arguments: Kwargs
    methods: Kwargs = field(default_factory=dict)
    inputs: JSON = None


def of(kind: str, **fields: JSON) -> Kwargs:
    """Return an object of the SDK's class `kind`."""
    return {"__type__": kind, **fields}


def code(**fields: JSON) -> Kwargs:
    return of("SourceCode", source_dir="code", **fields)


SOURCES: tuple[JSON, ...] = (
    *(code(entry_script="train.py"), code(entry_script="train.py", requirements="requirements.txt")),
    *(code(entry_script="train.sh"), code(entry_script="parts/train.py"), code(command="python train.py --x 1"), None),
    code(command="python train.py", args=["--lr", 0.1, "--name", "a b", "--steps", 3], requirements="requirements.txt"),
    code(entry_script="train.py", requirements="parts/more.txt"),
    code(entry_script="train.py", ignore_patterns=["parts", "*.sh"]),
    code(command="python  -u  train.py | tee log", entry_script="train.py"),
    of("SourceCode", source_dir="s3://my-bucket/code/", entry_script="train.py"),
    of("SourceCode", source_dir="s3://my-bucket/code.tar.gz", entry_script="train.py"),
    *(of("SourceCode", command="python -m torch.utils.collect_env"), code()),
)

SMP: Kwargs = of("SMP", tensor_parallel_degree=2, random_seed=1, sm_activation_offloading=True)
DISTRIBUTIONS: tuple[JSON, ...] = (
    *(of("Torchrun"), of("Torchrun", process_count_per_node=4), of("MPI"), of("MPI", process_count_per_node=2)),
    of("Torchrun", smp=SMP),
    of("Torchrun", process_count_per_node=8, smp=of("SMP", hybrid_shard_degree=4, allow_empty_shards=False)),
    of("MPI", process_count_per_node=8, mpi_additional_options=["-x", "NCCL_DEBUG=VERSION", "--verbose"]),
)


def group(name: str, instance_type: str, count: int) -> Kwargs:
    return of("InstanceGroup", instance_group_name=name, instance_type=instance_type, instance_count=count)


def machines(instance_type: str, **fields: JSON) -> Kwargs:
    return {"instance_type": instance_type, **fields}


MACHINES: tuple[Kwargs, ...] = (
    {},
    machines("ml.g5.2xlarge"),
    machines("ml.trn1.32xlarge"),
    machines("ml.p4d.24xlarge", instance_count=2),
    machines("ml.c5.2xlarge", instance_count=2),
    machines("ml.p5.48xlarge", instance_count=2),
    machines("ml.g4dn.12xlarge", instance_count=4),
    machines("ml.p4d.24xlarge", instance_count=4),
    {"instance_count": 3},
    {"instance_preferences": [machines("ml.p5.48xlarge"), machines("ml.p4d.24xlarge")], "instance_count": 2},
)
GROUPS: tuple[Kwargs, ...] = (
    {"instance_groups": [group("train", "ml.p4d.24xlarge", 2), group("data", "ml.c5.9xlarge", 1)]},
    {"instance_groups": [group("train", "ml.p5.48xlarge", 4)]},
)

COMPUTE_OPTIONS: tuple[Kwargs, ...] = (
    {"volume_size_in_gb": 100},
    {"volume_size_in_gb": 30},
    {"volume_kms_key_id": KEY},
    {"keep_alive_period_in_seconds": 1800},
    {"training_plan_arn": PLAN},
    {"enable_managed_spot_training": False},
    {
        "training_plan_arn": PLAN,
        "instance_placement_config": of(
            "InstancePlacementConfig",
            enable_multiple_jobs=True,
            placement_specifications=[of("PlacementSpecification", ultra_server_id="ultra-1", instance_count=2)],
        ),
    },
)

STOPPING: tuple[JSON, ...] = (
    of("StoppingCondition", max_runtime_in_seconds=7200),
    of("StoppingCondition", max_runtime_in_seconds=86400, max_pending_time_in_seconds=7200),
    of("StoppingCondition", max_pending_time_in_seconds=10800),
)

OPTIONS: tuple[Kwargs, ...] = (
    {"environment": {"NCCL_DEBUG": "INFO", "EMPTY": ""}},
    {"environment": {}},
    {"tags": [of("Tag", key="team", value="ml"), of("Tag", key="cost-center", value="42")]},
    {"tags": []},
    {"tags": [{"key": "team", "value": "ml"}]},
    {"networking": of("Networking", **VPC)},
    {"networking": of("Networking", enable_network_isolation=True)},
    {"networking": of("Networking", enable_inter_container_traffic_encryption=True, **VPC)},
    {"networking": of("Networking", enable_network_isolation=False, enable_inter_container_traffic_encryption=False)},
    {"output_data_config": of("OutputDataConfig", s3_output_path="s3://my-bucket/out")},
    {"output_data_config": of("OutputDataConfig", s3_output_path="s3://my-bucket/out/", compression_type="NONE")},
    {"output_data_config": of("OutputDataConfig", kms_key_id=KEY, compression_type="GZIP")},
    {"output_data_config": of("OutputDataConfig", compression_type="NONE")},
    {"checkpoint_config": of("CheckpointConfig", s3_uri="s3://my-bucket/ckpt")},
    {"checkpoint_config": of("CheckpointConfig", s3_uri="s3://my-bucket/ckpt/", local_path="/opt/ml/snapshots")},
    {"checkpoint_config": of("CheckpointConfig")},
    {"training_input_mode": "FastFile"},
    {"training_input_mode": "Pipe"},
    {"input_s3_key_prefix": "team/x"},
    {"role": ROLE_NAME},
    {"networking": {"enable_network_isolation": True}},
    {
        "model_package_config": {
            "model_package_group_arn": "arn:aws:sagemaker:us-west-2:111122223333:model-package-group/g"
        }
    },
    {"base_job_name": "with_underscores"},
    {"base_job_name": f"long-{'name-' * 11}x"},
    {"training_image_config": of("TrainingImageConfig", training_repository_access_mode="Vpc")},
    {
        "training_image_config": of(
            "TrainingImageConfig",
            training_repository_access_mode="Vpc",
            training_repository_auth_config=of(
                "TrainingRepositoryAuthConfig",
                training_repository_credentials_provider_arn="arn:aws:lambda:us-west-2:111122223333:function:login",
            ),
        ),
        "networking": of("Networking", **VPC),
    },
)

METHODS: tuple[Kwargs, ...] = (
    {"with_retry_strategy": of("RetryStrategy", maximum_retry_attempts=1)},
    {"with_retry_strategy": of("RetryStrategy", maximum_retry_attempts=3)},
    {"with_remote_debug_config": of("RemoteDebugConfig", enable_remote_debug=True)},
    {"with_infra_check_config": of("InfraCheckConfig", enable_infra_check=False)},
    {"with_session_chaining_config": of("SessionChainingConfig", enable_session_tag_chaining=True)},
    {"with_metric_definitions": [of("MetricDefinition", name="train:loss", regex="loss=([0-9\\.]+)")]},
    {"with_tensorboard_output_config": of("TensorBoardOutputConfig", s3_output_path="s3://my-bucket/board")},
    {"with_tensorboard_output_config": of("TensorBoardOutputConfig", local_path="/opt/ml/output/board")},
    {"with_checkpoint_config": of("CheckpointConfig", s3_uri="s3://my-bucket/more")},
)

TRAIN = "s3://my-bucket/train"


def objects(uri: str, **fields: JSON) -> Kwargs:
    return of("S3DataSource", **{"s3_data_type": "S3Prefix", "s3_uri": uri, **fields})


def files(**fields: JSON) -> Kwargs:
    fixed: Kwargs = {"file_system_id": "fs-0123456789abcdef0", "file_system_type": "FSxLustre"}
    return of("FileSystemDataSource", **{**fixed, "directory_path": "/fsx/train", **fields})


CHANNELS: tuple[Kwargs, ...] = (
    of("InputData", data_source=TRAIN),
    of("InputData", data_source=TRAIN, content_type="text/csv"),
    of("InputData", data_source=objects(TRAIN, s3_data_distribution_type="ShardedByS3Key")),
    of("InputData", data_source=objects("s3://my-bucket/list", s3_data_type="ManifestFile")),
    of("Channel", data_source=of("DataSource", s3_data_source=objects(TRAIN))),
    of(
        "Channel",
        data_source=of("DataSource", s3_data_source=objects(TRAIN, s3_data_distribution_type="FullyReplicated")),
        input_mode="FastFile",
        content_type="image/png",
        shuffle_config=of("ShuffleConfig", seed=3),
    ),
    of(
        "Channel",
        data_source=of(
            "DataSource",
            s3_data_source=objects(
                "s3://my-bucket/labels", s3_data_type="AugmentedManifestFile", attribute_names=["source-ref", "label"]
            ),
        ),
        input_mode="Pipe",
        compression_type="Gzip",
        record_wrapper_type="RecordIO",
    ),
)
FILE_SYSTEMS: tuple[Kwargs, ...] = (
    of("InputData", data_source=files(file_system_access_mode="ro")),
    of(
        "Channel",
        data_source=of(
            "DataSource", file_system_data_source=files(file_system_type="EFS", file_system_access_mode="rw")
        ),
    ),
)

REGIONS = ("us-west-2", "us-west-2", "eu-west-1", "cn-north-1")
SESSIONS: tuple[Kwargs, ...] = (
    {},
    {},
    {},
    {"default_bucket": "my-code"},
    {"default_bucket_prefix": "team/x"},
    {"default_bucket": "my-code", "default_bucket_prefix": "team/x"},
)


def trainer_cases(seed: int, count: int) -> list[TrainerCase]:
    """`count` cases, the same for the same seed."""
    return [_case(Random(f"{seed} {number}"), number) for number in range(count)]  # noqa: S311 - no secret


def _case(random: Random, number: int) -> TrainerCase:
    arguments: Kwargs = {"training_image": IMAGE, "base_job_name": f"trainer-{number}"}
    if random.random() < 0.1:
        del arguments["base_job_name"]
    arguments["source_code"] = _early(random, SOURCES)
    source = arguments["source_code"]
    if random.random() < (0.6 if isinstance(source, dict) and "entry_script" in source else 0.1):
        arguments["distributed"] = random.choice(DISTRIBUTIONS)
    if random.random() < 0.7:
        arguments["hyperparameters"] = dict(random.choice(HYPERPARAMETERS))
    arguments.update(_machines(random))
    for option in random.sample(OPTIONS, random.choice((0, 1, 2, 4))):
        arguments.update(option)
    methods: Kwargs = {}
    for option in random.sample(METHODS, random.choice((0, 0, 1, 2))):
        methods.update(option)
    inputs = _add_inputs(random, arguments)
    return TrainerCase(f"case-{number}", random.choice(REGIONS), random.choice(SESSIONS), arguments, methods, inputs)


def _machines(random: Random) -> Kwargs:
    if random.random() < 0.1:
        return {}
    compute: Kwargs = {"__type__": "Compute", **random.choice(GROUPS if random.random() < 0.25 else MACHINES)}
    for option in random.sample(COMPUTE_OPTIONS, random.choice((0, 0, 1, 2))):
        compute.update(option)
    if random.random() < 0.2:
        compute["enable_managed_spot_training"] = True
        wait = random.choice((7200, 7200, 3600, None))
        stopping = of("StoppingCondition", max_runtime_in_seconds=3600, max_wait_time_in_seconds=wait)
        return {"compute": compute, "stopping_condition": stopping}
    return {"compute": compute, **({"stopping_condition": random.choice(STOPPING)} if random.random() < 0.4 else {})}


def _add_inputs(random: Random, arguments: Kwargs) -> JSON:
    """Return the channels of `train`, and set those of the trainer."""
    first, second = (random.sample(CHANNELS, random.choice((0, 1, 2))) for _ in range(2))
    compute = arguments.get("compute")
    if isinstance(compute, dict) and "instance_groups" in compute and random.random() < 0.7:
        first = [of("InputData", data_source=objects(TRAIN, instance_group_names=["train"]))]
        second = []
    elif random.random() < 0.15:
        first = [random.choice(FILE_SYSTEMS)]
        arguments["networking"] = of("Networking", **VPC)
    if second:
        arguments["input_data_config"] = _named(second, ("validation", "train"))
    return _named(first, ("train", "more")) if first else None


def _named(channels: Sequence[Kwargs], names: Sequence[str]) -> list[JSON]:
    return [{**channel, "channel_name": name} for channel, name in zip(channels, names, strict=False)]


def _early(random: Random, items: Sequence[Item]) -> Item:
    """Choose one of them, the first ones with a higher probability, because they fit most."""
    return items[min(random.randrange(len(items)), random.randrange(len(items)))]
