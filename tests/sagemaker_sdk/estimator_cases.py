"""Estimators as users write them, in many combinations, for comparisons of muster with the SageMaker SDK.

Each comes from a seed, so that a case keeps its name. Most are valid; some have a version, an instance type, a
distribution or a setting that doesn't fit.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

from muster.api.document import JSON

Item = TypeVar("Item")
Kwargs = dict[str, JSON]


@dataclass(frozen=True)
class Case:
    """An estimator of the SDK, by its class's name and arguments, and the inputs of `fit`."""

    name: str
    region: str
    estimator: str
    kwargs: Kwargs
    inputs: JSON = field(default=None)


PYTORCH = (
    *(("2.0.1", "py310"), ("1.13.1", "py39"), ("2.1.0", "py310"), ("2.2.0", "py310"), ("2.3.0", "py311")),
    *(("2.5.1", "py311"), ("2.8.0", "py312"), ("1.12.1", "py38"), ("2.0", "py310"), ("1.6.0", "py36")),
    *(("1.13.1", "py38"), ("1.2.0", "py3"), ("2.0.1", "py39"), ("9.9.9", "py310"), ("2.4.1", "py311")),
)
TENSORFLOW = (
    *(("2.3.0", "py37"), ("2.3.1", "py37"), ("2.11.0", "py39"), ("2.12.0", "py310"), ("2.14.1", "py310")),
    *(("2.9", "py39"), ("1.15.5", "py37"), ("1.13.1", "py3"), ("2.19.0", "py312"), ("1.10.0", "py2"), ("2.2.0", "py2")),
)
HUGGING_FACE: tuple[Kwargs, ...] = (
    {"transformers_version": "4.28.1", "pytorch_version": "2.0.0", "py_version": "py310"},
    {"transformers_version": "4.26", "pytorch_version": "1.13", "py_version": "py39"},
    {"transformers_version": "4.56.2", "pytorch_version": "2.8.0", "py_version": "py312"},
    {"transformers_version": "4.36.0", "pytorch_version": "2.1.0", "py_version": "py310"},
    {"transformers_version": "4.17.0", "tensorflow_version": "2.6.3", "py_version": "py38"},
    {"transformers_version": "4.4.2", "pytorch_version": "1.6.0", "py_version": "py36"},
    {"transformers_version": "4.26", "pytorch_version": "1.13.1", "py_version": "py39"},
    {"transformers_version": "4.28.1", "py_version": "py310"},
)
OWN_IMAGES = (
    "111122223333.dkr.ecr.us-west-2.amazonaws.com/img:1",
    "763104351884.dkr.ecr.us-west-2.amazonaws.com/pytorch-training:2.0.1-gpu-py310-cu118-ubuntu20.04-sagemaker",
    "763104351884.dkr.ecr.us-west-2.amazonaws.com/pytorch-training:2.0.1-gpu-py310-cu121-ubuntu20.04-sagemaker",
)

GPUS = ("ml.p4d.24xlarge", "ml.g5.2xlarge", "ml.p3.16xlarge", "ml.p4de.24xlarge", "ml.g4dn.12xlarge", "ml.p5.48xlarge")
OTHERS = ("ml.c5.2xlarge", "ml.m5.xlarge", "ml.trn1.32xlarge", "ml.trn1n.32xlarge", "ml.p2.xlarge", "ml.p5en.48xlarge")
REGIONS = (
    "us-west-2",
    "us-west-2",
    "us-west-2",
    "eu-west-1",
    "cn-north-1",
    "ap-southeast-3",
    "us-gov-west-1",
    "us-east-1",
)


def group(name: str, instance_type: str, count: int) -> Kwargs:
    return {
        "__type__": "InstanceGroup",
        "instance_group_name": name,
        "instance_type": instance_type,
        "instance_count": count,
    }


GROUPS: tuple[list[JSON], ...] = (
    [group("data", "ml.c5.9xlarge", 2), group("train", "ml.p4d.24xlarge", 2)],
    [group("train", "ml.p4d.24xlarge", 4)],
    [group("data", "ml.c5.9xlarge", 1), group("train", "ml.p5.48xlarge", 2)],
)

MPI_OPTIONS = "-verbose -x NCCL_DEBUG=VERSION"
TENSOR: Kwargs = {"tensor_parallel_degree": 4, "pipeline_parallel_degree": 2, "microbatches": 4, "ddp": True}
SHARDED: Kwargs = {"hybrid_shard_degree": 2, "tensor_parallel_degree": 4}

ON: Kwargs = {"enabled": True}
OFF: Kwargs = {"enabled": False}
MPI: Kwargs = {"enabled": True, "processes_per_host": 8, "custom_mpi_options": MPI_OPTIONS}


def smp(**settings: JSON) -> Kwargs:
    return {"smdistributed": {"modelparallel": {"enabled": True, **settings}}}


PYTORCH_DISTRIBUTIONS: tuple[Kwargs, ...] = (
    {"torch_distributed": ON},
    {"torch_distributed": OFF},
    {"pytorchddp": ON},
    {"pytorchddp": {"enabled": True, "custom_mpi_options": MPI_OPTIONS}},
    {"pytorchddp": OFF},
    {"smdistributed": {"dataparallel": ON}},
    {"smdistributed": {"dataparallel": {"enabled": True, "custom_mpi_options": MPI_OPTIONS}}},
    {"smdistributed": {"dataparallel": OFF}},
    {"torch_distributed": ON, "smdistributed": {"dataparallel": ON}},
    {**smp(parameters=TENSOR), "mpi": MPI},
    {**smp(parameters=SHARDED), "torch_distributed": ON},
    smp(parameters={"partitions": 2}),
    {**smp(parameters={"pipeline": "simple", "optimize": "memory", "placement_strategy": "spread"}), "mpi": ON},
    {**smp(parameters={"auto_partition": False, "default_partition": 1, "partitions": 2}), "mpi": ON},
    {**smp(parameters={"ddp": True, "ddp_port": 1234, "memory_weight": 0.5, "_of_later": [1, None]}), "mpi": ON},
    smp(parameters={"pipeline": "backwards"}),
    smp(parameters={"auto_partition": False}),
    smp(parameters={"default_partition": 2, "partitions": 2}),
    smp(parameters={"horovod": True, "ddp": True}),
    smp(parameters={"microbatches": 0}),
    smp(parameters={"ddp_port": 1234}),
    smp(parameters={"memory_weight": 1.5}),
    {"smdistributed": {"modelparallel": {"enabled": False, "parameters": SHARDED}}, "mpi": ON},
    {"smdistributed": {"modelparallel": OFF}, "torch_distributed": ON},
    {"smdistributed": {"dataparallel": {"enabled": False, "custom_mpi_options": MPI_OPTIONS}}},
    {"torch_distributed": ON, "mpi": MPI},
    {"torch_distributed": OFF, "mpi": MPI},
    {"mpi": {"enabled": False, "processes_per_host": 4}},
    {**smp(), "mpi": {"enabled": True, "processes_per_host": 4}},
    {"mpi": ON},
    {"mpi": {"enabled": True, "processes_per_host": 8}},
    {"mpi": MPI},
    {"mpi": OFF},
)
TENSORFLOW_DISTRIBUTIONS: tuple[Kwargs, ...] = (
    {"parameter_server": ON},
    {"parameter_server": OFF},
    {"multi_worker_mirrored_strategy": ON},
    {"multi_worker_mirrored_strategy": OFF},
    {"mpi": MPI},
    {"mpi": OFF},
    {"mpi": {"enabled": True, "processes_per_host": 2}},
    {"smdistributed": {"dataparallel": ON}},
    {"parameter_server": ON, "multi_worker_mirrored_strategy": ON},
)

HYPERPARAMETERS: tuple[Kwargs, ...] = (
    {"epochs": 10, "batch_size": 32, "lr": 3e-05, "gamma": 0.7},
    {"model": "vit base", "pretrained": True, "layers": [1, 2, 3], "none": None, "nested": {"a": 1}},
    {"one": 1.0, "big": 2**70, "text": 'quoted "text"', "umlaut": "grün"},
)

VPC: Kwargs = {"subnets": ["subnet-0123"], "security_group_ids": ["sg-0123", "sg-4567"]}

OPTIONS: tuple[Kwargs, ...] = (
    {"use_spot_instances": True, "max_run": 3600, "max_wait": 7200},
    {"keep_alive_period_in_seconds": 1800},
    {"max_retry_attempts": 3},
    {"max_run": 2 * 86400},
    {"checkpoint_s3_uri": "s3://my-bucket/ckpt"},
    {"checkpoint_s3_uri": "s3://my-bucket/ckpt", "checkpoint_local_path": "/opt/ml/snapshots"},
    VPC,
    {"environment": {"NCCL_DEBUG": "INFO", "EMPTY": ""}},
    {"tags": [{"Key": "team", "Value": "ml"}]},
    {"tags": {"team": "ml", "cost-center": "42"}},
    {"volume_size": 100, "volume_kms_key": "1234abcd-12ab-34cd-56ef-1234567890ab"},
    {"encrypt_inter_container_traffic": True},
    {"enable_network_isolation": True},
    {"output_path": "s3://my-bucket/out"},
    {"output_path": "s3://my-bucket/out/", "output_kms_key": "1234abcd-12ab-34cd-56ef-1234567890ab"},
    {"code_location": "s3://code-bucket/of/mine"},
    {"code_location": "s3://code-bucket"},
    {"metric_definitions": [{"Name": "train:loss", "Regex": "loss=([0-9\\.]+)"}]},
    {"debugger_hook_config": False},
    {"debugger_hook_config": {"__type__": "DebuggerHookConfig", "s3_output_path": "s3://my-bucket/tensors"}},
    {
        "debugger_hook_config": {
            "__type__": "DebuggerHookConfig",
            "s3_output_path": "s3://my-bucket/tensors",
            "hook_parameters": {"save_interval": "100"},
            # One: the SDK sends several in an unspecified order.
            "collection_configs": [
                {"__type__": "CollectionConfig", "name": "losses", "parameters": {"save_interval": "10"}}
            ],
        }
    },
    {"disable_profiler": True},
    {"profiler_config": {"__type__": "ProfilerConfig", "system_monitor_interval_millis": 1000}},
    {
        "tensorboard_output_config": {
            "__type__": "TensorBoardOutputConfig",
            "s3_output_path": "s3://my-bucket/board",
            "container_local_output_path": "/opt/ml/output/tensorboard",
        }
    },
    {"training_plan": "arn:aws:sagemaker:us-west-2:111122223333:training-plan/p1"},
    {"enable_remote_debug": True},
    {"enable_infra_check": True},
    {"enable_session_tag_chaining": True},
    {"enable_sagemaker_metrics": False},
    {"container_log_level": 10},
    {"input_mode": "Pipe"},
    {"disable_output_compression": True},
    {"model_uri": "s3://my-bucket/model.tar.gz"},
    {"container_arguments": ["--verbose"]},
    {"container_entry_point": ["python", "-u"], "container_arguments": ["train.py"]},
    {"entry_point": "train.sh"},
    {"entry_point": "parts/train.py"},
    {"entry_point": "train.py", "source_dir": "s3://my-bucket/code/sourcedir.tar.gz"},
    {"training_repository_access_mode": "Vpc", **VPC},
    {
        "training_repository_access_mode": "Vpc",
        "training_repository_credentials_provider_arn": "arn:aws:lambda:us-west-2:111122223333:function:login",
        **VPC,
    },
    {
        "instance_placement_config": {
            "EnableMultipleJobs": True,
            "PlacementSpecifications": [{"UltraServerId": "ultra-1", "InstanceCount": 2}],
        },
        "training_plan": "arn:aws:sagemaker:us-west-2:111122223333:training-plan/p1",
    },
    {
        "rules": [
            {
                "__type__": "Rule",
                "name": "watch",
                "image_uri": "111122223333.dkr.ecr.us-west-2.amazonaws.com/rules:1",
                "instance_type": "ml.t3.medium",
                "volume_size_in_gb": 10,
                "source": "s3://my-bucket/rule.py",
                "rule_to_invoke": "Watch",
                "rule_parameters": {"threshold": "4"},
            },
            {
                "__type__": "ProfilerRule",
                "name": "profile",
                "image_uri": "111122223333.dkr.ecr.us-west-2.amazonaws.com/rules:1",
                "instance_type": "ml.t3.medium",
                "volume_size_in_gb": 10,
                "s3_output_path": "s3://my-bucket/rules",
            },
        ]
    },
)

TRAIN = "s3://my-bucket/train"
INPUTS: tuple[JSON, ...] = (
    TRAIN,
    None,
    {"train": TRAIN, "validation": "s3://my-bucket/validation"},
    {"__type__": "TrainingInput", "s3_data": TRAIN, "content_type": "image/png"},
    {"__type__": "TrainingInput", "s3_data": TRAIN, "input_mode": "FastFile"},
    {
        "train": {
            "__type__": "TrainingInput",
            "s3_data": TRAIN,
            "distribution": "ShardedByS3Key",
            "input_mode": "File",
        },
        "labels": {
            "__type__": "TrainingInput",
            "s3_data": "s3://my-bucket/labels.manifest",
            "s3_data_type": "AugmentedManifestFile",
            "attribute_names": ["source-ref", "label"],
            "record_wrapping": "RecordIO",
            "input_mode": "Pipe",
            "compression": "Gzip",
            "shuffle_config": {"__type__": "ShuffleConfig", "seed": 1234},
        },
    },
)
FILE_SYSTEMS: JSON = {
    "train": {
        "__type__": "FileSystemInput",
        "file_system_id": "fs-0123456789abcdef0",
        "file_system_type": "FSxLustre",
        "directory_path": "/fsx/train",
    },
    "more": {
        "__type__": "FileSystemInput",
        "file_system_id": "fs-0123abcd",
        "file_system_type": "EFS",
        "directory_path": "/train",
        "file_system_access_mode": "rw",
    },
}


def cases(seed: int, count: int) -> list[Case]:
    """`count` cases, the same for the same seed."""
    return [_case(Random(f"{seed} {number}"), number) for number in range(count)]  # noqa: S311 - no secret


def _case(random: Random, number: int) -> Case:
    estimator = random.choice(("PyTorch", "PyTorch", "PyTorch", "TensorFlow", "HuggingFace", "Estimator"))
    kwargs: Kwargs = {**_framework(random, estimator), **_machines(random, estimator)}
    if estimator != "Estimator" and random.random() < 0.8:
        kwargs["distribution"] = _distribution(random, estimator, kwargs)
    if random.random() < 0.8:
        kwargs["hyperparameters"] = dict(random.choice(HYPERPARAMETERS))
    for option in random.sample(OPTIONS, random.choice((0, 0, 1, 2, 4))):
        kwargs.update(option)
    if "instance_groups" in kwargs:
        # The SDK fails with these two together: it requires more than one instance, but the count is missing.
        kwargs.pop("checkpoint_local_path", None)
    region = random.choice(REGIONS)
    if random.random() < 0.1:
        return Case(f"case-{number}", region, estimator, {**kwargs, **VPC}, FILE_SYSTEMS)
    return Case(f"case-{number}", region, estimator, kwargs, _inputs(random, kwargs))


def _inputs(random: Random, kwargs: Kwargs) -> JSON:
    if "instance_groups" in kwargs and random.random() < 0.5:
        return {"train": {"__type__": "TrainingInput", "s3_data": TRAIN, "instance_groups": ["train"]}}
    return random.choice((TRAIN, *INPUTS))


def _framework(random: Random, estimator: str) -> Kwargs:
    if estimator == "HuggingFace" and random.random() < 0.1:
        return {"image_uri": random.choice(OWN_IMAGES), **HUGGING_FACE[0]}
    if estimator == "Estimator":
        return {"image_uri": random.choice(OWN_IMAGES), **random.choice(_STARTS)}
    if estimator == "HuggingFace":
        return dict(_early(random, HUGGING_FACE))
    version, python = _early(random, PYTORCH if estimator == "PyTorch" else TENSORFLOW)
    kwargs: Kwargs = {"framework_version": version, "py_version": python}
    if estimator == "PyTorch" and random.random() < 0.1:
        return {"image_uri": random.choice(OWN_IMAGES), **random.choice(({}, kwargs))}
    if estimator == "TensorFlow":
        kwargs.update(random.choice(_MODEL_FOLDERS))
    return kwargs


_STARTS: tuple[Kwargs, ...] = (
    {},
    {"container_entry_point": ["torchrun"], "container_arguments": ["--nproc_per_node", "4", "train.py"]},
    {"container_arguments": ["--verbose"]},
    {"entry_point": "train.py"},
    {"entry_point": "train.py", "container_arguments": ["--verbose"]},
)
_MODEL_FOLDERS: tuple[Kwargs, ...] = ({}, {}, {"model_dir": False}, {"model_dir": "s3://my-bucket/model"})


def _machines(random: Random, estimator: str) -> Kwargs:
    if random.random() < 0.15:
        return {"instance_groups": random.choice(GROUPS)}
    types = GPUS if estimator == "HuggingFace" else (*GPUS, *GPUS, *OTHERS)
    return {"instance_type": random.choice(types), "instance_count": random.choice((1, 2, 2, 4))}


def _distribution(random: Random, estimator: str, kwargs: Kwargs) -> Kwargs:
    own = [PYTORCH_DISTRIBUTIONS, TENSORFLOW_DISTRIBUTIONS]
    mismatched = random.random() < 0.05
    distribution = dict(random.choice(own[(estimator == "TensorFlow") != mismatched]))
    groups = kwargs.get("instance_groups")
    if isinstance(groups, list) and random.random() < 0.8:
        distribution["instance_groups"] = groups[-1:]
    return distribution


def _early(random: Random, items: Sequence[Item]) -> Item:
    """Choose one of them, the first ones with a higher probability, because they fit most."""
    return items[min(random.randrange(len(items)), random.randrange(len(items)))]
