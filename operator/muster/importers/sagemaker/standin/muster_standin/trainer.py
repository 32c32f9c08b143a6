"""The stand-in for SDK 3's ModelTrainer, which records its arguments when the script calls `train`."""

from __future__ import annotations

from enum import Enum

from .arguments import bind_arguments
from .config_objects import ConfigObject, create_config_class
from .errors import UnsupportedOperation
from .state import get_state
from .training import TrainingJob, check_session, describe_session
from .unknown import UnknownValue
from .values import encode

PARAMETERS = (
    "training_mode", "sagemaker_session", "role", "base_job_name", "input_s3_key_prefix", "source_code", "distributed",
    "compute", "networking", "stopping_condition", "training_image", "training_image_config", "algorithm_name",
    "output_data_config", "input_data_config", "checkpoint_config", "training_input_mode", "environment",
    "hyperparameters", "tags", "local_container_root", "model_package_config",
)  # fmt: skip
"""The fields of ModelTrainer (SDK 3.27.0)."""

_CONFIG_FIELDS = {
    "SourceCode": ("source_dir", "requirements", "entry_script", "command", "args", "ignore_patterns"),
    "StoppingCondition": ("max_runtime_in_seconds", "max_wait_time_in_seconds", "max_pending_time_in_seconds"),
    "RetryStrategy": ("maximum_retry_attempts",),
    "OutputDataConfig": ("s3_output_path", "kms_key_id", "compression_type"),
    "Channel": (
        "channel_name", "data_source", "content_type", "compression_type", "record_wrapper_type", "input_mode",
        "shuffle_config",
    ),
    "ShuffleConfig": ("seed",),
    "DataSource": ("s3_data_source", "file_system_data_source", "dataset_source"),
    "S3DataSource": (
        "s3_data_type", "s3_uri", "s3_data_distribution_type", "attribute_names", "instance_group_names",
        "model_access_config", "hub_access_config",
    ),
    "FileSystemDataSource": ("file_system_id", "file_system_access_mode", "file_system_type", "directory_path"),
    "TrainingImageConfig": ("training_repository_access_mode", "training_repository_auth_config"),
    "TrainingRepositoryAuthConfig": ("training_repository_credentials_provider_arn",),
    "Tag": ("key", "value"),
    "InfraCheckConfig": ("enable_infra_check",),
    "RemoteDebugConfig": ("enable_remote_debug",),
    "SessionChainingConfig": ("enable_session_tag_chaining",),
    "InstanceGroup": ("instance_type", "instance_count", "instance_group_name"),
    "InstancePlacementConfig": ("enable_multiple_jobs", "placement_specifications"),
    "PlacementSpecification": ("instance_count", "ultra_server_id"),
    "TensorBoardOutputConfig": ("s3_output_path", "local_path"),
    "CheckpointConfig": ("s3_uri", "local_path"),
    "HubAccessConfig": ("hub_content_arn",),
    "ModelAccessConfig": ("accept_eula",),
    "Compute": (
        "instance_type", "instance_count", "volume_size_in_gb", "volume_kms_key_id", "keep_alive_period_in_seconds",
        "instance_groups", "training_plan_arn", "instance_placement_config", "instance_preferences",
        "enable_managed_spot_training",
    ),
    "Networking": (
        "security_group_ids", "subnets", "enable_network_isolation", "enable_inter_container_traffic_encryption",
    ),
    "InputData": ("channel_name", "data_source", "content_type"),
    "MetricDefinition": ("name", "regex"),
    "DatasetSource": ("dataset_arn",),
}  # fmt: skip
"""The configuration classes and their fields (sagemaker.core.training.configs and shapes, SDK 3.27.0)."""

_DISTRIBUTED_FIELDS = {
    "Torchrun": ("process_count_per_node", "smp"),
    "MPI": ("process_count_per_node", "mpi_additional_options"),
    "SMP": (
        "hybrid_shard_degree", "sm_activation_offloading", "activation_loading_horizon", "fsdp_cache_flush_warnings",
        "allow_empty_shards", "tensor_parallel_degree", "context_parallel_degree", "expert_parallel_degree",
        "random_seed",
    ),
}  # fmt: skip
"""The classes of sagemaker.train.distributed and their fields (SDK 3.27.0)."""

CONFIG_CLASSES: dict[str, type[ConfigObject]] = {
    name: create_config_class(name, fields, positional=False) for name, fields in _CONFIG_FIELDS.items()
}
DISTRIBUTED_CLASSES: dict[str, type[ConfigObject]] = {
    name: create_config_class(name, fields, positional=False) for name, fields in _DISTRIBUTED_FIELDS.items()
}


class Mode(Enum):
    """Replaces SDK 3's Mode: whether a training job runs in local containers or on SageMaker."""

    LOCAL_CONTAINER = "LOCAL_CONTAINER"
    SAGEMAKER_TRAINING_JOB = "SAGEMAKER_TRAINING_JOB"


class ModelTrainer:
    """Replaces sagemaker.train.ModelTrainer."""

    def __init__(self, *positional: object, **keywords: object) -> None:
        if positional:
            bind_arguments("ModelTrainer", (), positional, {})
        arguments = bind_arguments("ModelTrainer", PARAMETERS, (), keywords)
        check_session("ModelTrainer", arguments.get("sagemaker_session"))
        vars(self).update(_arguments=arguments, _latest_training_job=None)

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in PARAMETERS:
            return vars(self)["_arguments"].get(name)
        return get_state().create_unknown(f"ModelTrainer.{name}")

    def __setattr__(self, name: str, value: object) -> None:
        vars(self)["_arguments"].update(bind_arguments("ModelTrainer", PARAMETERS, (), {name: value}))

    def with_tensorboard_output_config(self, tensorboard_output_config: object = None) -> ModelTrainer:
        return self._set_argument(
            "tensorboard_output_config", tensorboard_output_config or CONFIG_CLASSES["TensorBoardOutputConfig"]()
        )

    def with_retry_strategy(self, retry_strategy: object) -> ModelTrainer:
        return self._set_argument("retry_strategy", retry_strategy)

    def with_infra_check_config(self, infra_check_config: object = None) -> ModelTrainer:
        default = CONFIG_CLASSES["InfraCheckConfig"](enable_infra_check=True)
        return self._set_argument("infra_check_config", infra_check_config or default)

    def with_session_chaining_config(self, session_chaining_config: object = None) -> ModelTrainer:
        default = CONFIG_CLASSES["SessionChainingConfig"](enable_session_tag_chaining=True)
        return self._set_argument("session_chaining_config", session_chaining_config or default)

    def with_remote_debug_config(self, remote_debug_config: object = None) -> ModelTrainer:
        default = CONFIG_CLASSES["RemoteDebugConfig"](enable_remote_debug=True)
        return self._set_argument("remote_debug_config", remote_debug_config or default)

    def with_checkpoint_config(self, checkpoint_config: object = None) -> ModelTrainer:
        return self._set_argument("checkpoint_config", checkpoint_config or CONFIG_CLASSES["CheckpointConfig"]())

    def with_metric_definitions(self, metric_definitions: object) -> ModelTrainer:
        return self._set_argument("metric_definitions", metric_definitions)

    def _set_argument(self, name: str, value: object) -> ModelTrainer:
        vars(self)["_arguments"][name] = value
        return self

    def train(
        self,
        input_data_config: object = None,
        wait: object = True,  # noqa: ARG002, FBT002 - the SDK's signature
        logs: object = True,  # noqa: ARG002, FBT002 - the SDK's signature
        dry_run: object = False,  # noqa: FBT002 - the SDK's signature
    ) -> None:
        """Record a training job."""
        if dry_run:
            get_state().recorder.warn("train(dry_run=True) starts no job, so muster imports none")
            return
        arguments = dict(vars(self)["_arguments"])
        session = arguments.pop("sagemaker_session", None)
        if arguments.pop("training_mode", Mode.SAGEMAKER_TRAINING_JOB) not in {Mode.SAGEMAKER_TRAINING_JOB, None}:
            raise UnsupportedOperation("ModelTrainer(training_mode=...): muster can't import a job in local containers")
        arguments.pop("local_container_root", None)  # applies only to local containers
        call = {} if input_data_config is None else {"input_data_config": input_data_config}
        record = {
            "arguments": {name: encode(value, f"ModelTrainer({name}=...)") for name, value in arguments.items()},
            "call": {name: encode(value, f"train({name}=...)") for name, value in call.items()},
            "session": describe_session(session),
        }
        get_state().recorder.send("train", record)
        name = str(arguments.get("base_job_name") or "")
        vars(self)["_latest_training_job"] = TrainingJob("ModelTrainer", name)

    @classmethod
    def from_recipe(cls, *_: object, **__: object) -> UnknownValue:
        raise UnsupportedOperation(
            "ModelTrainer.from_recipe(...): the SDK downloads recipes when it runs; a job has no field for recipes"
        )

    @classmethod
    def from_jumpstart_config(cls, *_: object, **__: object) -> UnknownValue:
        raise UnsupportedOperation(
            "ModelTrainer.from_jumpstart_config(...): muster can't import it, because the SDK gets the model's "
            "settings from AWS and an import sends no requests; call ModelTrainer(...) with these settings"
        )
