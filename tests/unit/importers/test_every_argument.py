"""No argument of an estimator or a trainer is lost: each changes the job, or is reported."""

import json
from pathlib import Path

from muster.api.document import JSON
from muster.importers.sagemaker.jobs import ImportResult, SourceOptions, import_jobs
from muster.importers.sagemaker.standin.muster_standin import estimators, trainer
from muster.importers.sagemaker.translate.recording import EstimatorFit, Recording, TrainerRun, parse_record
from muster.importers.sagemaker.translate.translation import AccountOptions
from support.rows import check_rows

ROLE = "arn:aws:iam::111122223333:role/R"


def built(kind: str, **fields: JSON) -> JSON:
    return {"$shape": kind, "fields": fields}


RIGHT: dict[str, dict[str, JSON]] = {
    "Estimator": {"image_uri": "img:1", "instance_count": 1, "instance_type": "ml.g5.xlarge"},
    "PyTorch": {
        "entry_point": "train.py",
        "framework_version": "2.0.1",
        "py_version": "py310",
        "instance_count": 1,
        "instance_type": "ml.g5.xlarge",
    },
    "TensorFlow": {
        "entry_point": "train.py",
        "framework_version": "2.11.0",
        "py_version": "py39",
        "instance_count": 1,
        "instance_type": "ml.g5.xlarge",
    },
    "HuggingFace": {
        "entry_point": "train.py",
        "transformers_version": "4.28.1",
        "pytorch_version": "2.0.0",
        "py_version": "py310",
        "instance_count": 1,
        "instance_type": "ml.g5.xlarge",
    },
}
GIVEN: dict[str, JSON] = {
    "base_job_name": "other",
    "checkpoint_local_path": "/snapshots",
    "checkpoint_s3_uri": "s3://my-bucket/snapshots",
    "code_location": "s3://my-bucket/code",
    "compiler_config": built("TrainingCompilerConfig"),
    "container_arguments": ["--fast"],
    "container_entry_point": ["train"],
    "container_log_level": 10,
    "debugger_hook_config": False,
    "dependencies": ["lib"],
    "disable_output_compression": True,
    "disable_profiler": True,
    "distribution": {"mpi": {"enabled": True}},
    "enable_infra_check": True,
    "enable_network_isolation": True,
    "enable_remote_debug": True,
    "enable_sagemaker_metrics": False,
    "enable_session_tag_chaining": True,
    "encrypt_inter_container_traffic": True,
    "entry_point": "other.py",
    "environment": {"A": "1"},
    "framework_version": "2.1.0",
    "git_config": {"repo": "https://github.com/o/n.git", "commit": "a" * 40},
    "image_uri": "img:2",
    "input_mode": "Pipe",
    "instance_count": 2,
    "instance_groups": [
        built("InstanceGroup", instance_group_name="a", instance_type="ml.g5.xlarge", instance_count=1)
    ],
    "instance_placement_config": {"EnableMultipleJobs": True},
    "instance_type": "ml.p4d.24xlarge",
    "keep_alive_period_in_seconds": 60,
    "max_retry_attempts": 3,
    "max_run": 3600,
    "max_wait": 7200,
    "metric_definitions": [{"Name": "loss", "Regex": "loss=(.*)"}],
    "model_channel_name": "weights",
    "model_dir": "/opt/ml/other",
    "model_uri": "s3://my-bucket/model.tar.gz",
    "output_kms_key": "key",
    "output_path": "s3://my-bucket/out",
    "profiler_config": built("ProfilerConfig", system_monitor_interval_millis=100),
    "py_version": "py38",
    "pytorch_version": "1.13.1",
    "recipe_overrides": {"a": 1},
    "role": "arn:aws:iam::111122223333:role/Other",
    "rules": [built("Rule", name="r", image_uri="i:1", instance_type="ml.t3.medium", volume_size_in_gb=5)],
    "security_group_ids": ["sg-1"],
    "source_dir": "s3://my-bucket/other.tar.gz",
    "subnets": ["subnet-1"],
    "tags": {"a": "b"},
    "tensorboard_output_config": built("TensorBoardOutputConfig", s3_output_path="s3://my-bucket/tb"),
    "tensorflow_version": "2.11.0",
    "training_plan": "arn:aws:sagemaker:us-west-2:111122223333:training-plan/p",
    "training_recipe": "recipe",
    "training_repository_access_mode": "Vpc",
    "training_repository_credentials_provider_arn": "arn:aws:lambda:us-west-2:111122223333:function:f",
    "transformers_version": "4.26.0",
    "use_spot_instances": True,
    "volume_kms_key": "key",
    "volume_size": 100,
}
ELSEWHERE = {"sagemaker_session", "hyperparameters"}
"""Values that the script's process sends in addition to the arguments."""

WITH: dict[str, dict[str, JSON]] = {
    "model_channel_name": {"model_uri": "s3://my-bucket/model.tar.gz"},
    "training_repository_credentials_provider_arn": {"training_repository_access_mode": "Vpc"},
}
"""Further arguments that an argument needs to have an effect."""

RUN: dict[str, JSON] = {
    "training_image": "img:1",
    "source_code": built("SourceCode", source_dir="s3://my-bucket/code.tar.gz", entry_script="train.py"),
}
TRAINER: dict[str, JSON] = {
    "algorithm_name": "a",
    "base_job_name": "other",
    "checkpoint_config": built("CheckpointConfig", s3_uri="s3://my-bucket/snapshots"),
    "compute": built("Compute", instance_count=3),
    "distributed": built("Torchrun"),
    "environment": {"A": "1"},
    "hyperparameters": {"a": 1},
    "input_data_config": [built("InputData", channel_name="a", data_source="s3://my-bucket/a")],
    "input_s3_key_prefix": "team",
    "model_package_config": "m",
    "networking": built("Networking", enable_network_isolation=True),
    "output_data_config": built("OutputDataConfig", compression_type="NONE"),
    "role": "arn:aws:iam::111122223333:role/Other",
    "source_code": built("SourceCode", source_dir="s3://my-bucket/code.tar.gz", command="python other.py"),
    "stopping_condition": built("StoppingCondition", max_runtime_in_seconds=60),
    "tags": [built("Tag", key="a", value="b")],
    "training_image": "img:2",
    "training_image_config": built("TrainingImageConfig", training_repository_access_mode="Vpc"),
    "training_input_mode": "Pipe",
    # with_...()
    "infra_check_config": built("InfraCheckConfig", enable_infra_check=True),
    "metric_definitions": [built("MetricDefinition", name="loss", regex="loss=(.*)")],
    "remote_debug_config": built("RemoteDebugConfig", enable_remote_debug=True),
    "retry_strategy": built("RetryStrategy", maximum_retry_attempts=2),
    "session_chaining_config": built("SessionChainingConfig", enable_session_tag_chaining=True),
    "tensorboard_output_config": built("TensorBoardOutputConfig", s3_output_path="s3://my-bucket/tb"),
}
NOT_OF_THE_JOB = {"training_mode", "sagemaker_session", "local_container_root"}
"""The place where the trainer runs a job, which its process reads; and values other than arguments."""

KINDS = {
    kind.class_name: kind
    for kind in (estimators.Estimator, estimators.PyTorch, estimators.TensorFlow, estimators.HuggingFace)
}
PAIRS = [
    (kind, name) for kind, made in KINDS.items() for name in sorted(made.list_parameters()) if name not in ELSEWHERE
]


def fit_of(**fields: object) -> EstimatorFit | TrainerRun:
    run = parse_record(json.dumps({"location": "launch.py:1", "call": {}, "session": {}, **fields}))
    assert isinstance(run, (EstimatorFit, TrainerRun))
    return run


def of_estimator(kind: str, **arguments: JSON) -> ImportResult:
    value = {"role": ROLE, **RIGHT[kind], **arguments}
    return _imported(fit_of(kind="fit", **{"class": kind}, arguments=value, hyperparameters={}))


def of_trainer(**arguments: JSON) -> ImportResult:
    return _imported(fit_of(kind="train", arguments={"role": ROLE, **RUN, **arguments}))


def _imported(run: EstimatorFit | TrainerRun) -> ImportResult:
    place = AccountOptions("us-west-2", "111122223333", None)
    recording = Recording([run], files={name: name for name in ("train.py", "other.py", "lib")})
    return import_jobs(recording, "launch.py", place, SourceOptions(Path("/nowhere"), None), lambda _: None)


def test_the_runs_of_these_tests_are_right() -> None:
    for kind in RIGHT:
        assert of_estimator(kind).problems == ()
    assert of_trainer().problems == ()


def test_no_argument_of_an_estimator_is_lost() -> None:
    def check(kind: str, name: str) -> None:
        beside = WITH.get(name, {})
        without = of_estimator(kind, **beside)
        value = of_estimator(kind, **beside, **{name: GIVEN[name]})
        assert value != without

    check_rows(PAIRS, lambda row: check(*row))


def test_no_argument_of_a_trainer_is_lost() -> None:
    def check_row(name: str) -> None:
        value = of_trainer(**{name: TRAINER[name]})
        assert value != of_trainer()

    check_rows(sorted({*trainer.PARAMETERS, *TRAINER} - NOT_OF_THE_JOB), check_row)


def test_an_unknown_argument_is_an_error() -> None:
    assert of_estimator("PyTorch", new_in_sdk_9=1).problems == (
        "launch.py:1: PyTorch(new_in_sdk_9=...): a job has no field for this argument",
    )
    assert of_trainer(new_in_sdk_9=1).problems == (
        "launch.py:1: ModelTrainer(new_in_sdk_9=...): a job has no field for this argument",
    )
