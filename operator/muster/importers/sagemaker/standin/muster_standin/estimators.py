"""The stand-ins for SDK 2's estimators, which record their arguments when the script calls `fit`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import ClassVar

from .arguments import bind_arguments
from .errors import UnsupportedOperation
from .session import Session
from .state import get_state
from .training import TrainingJob, check_session, describe_session
from .unknown import UnknownValue
from .values import encode

_BASE_PARAMETERS = (
    "role", "instance_count", "instance_type", "keep_alive_period_in_seconds", "volume_size", "volume_kms_key",
    "max_run", "input_mode", "output_path", "output_kms_key", "base_job_name", "sagemaker_session", "tags", "subnets",
    "security_group_ids", "model_uri", "model_channel_name", "metric_definitions", "encrypt_inter_container_traffic",
    "use_spot_instances", "max_wait", "checkpoint_s3_uri", "checkpoint_local_path", "rules", "debugger_hook_config",
    "tensorboard_output_config", "enable_sagemaker_metrics", "enable_network_isolation", "profiler_config",
    "disable_profiler", "environment", "max_retry_attempts", "source_dir", "git_config", "hyperparameters",
    "container_log_level", "code_location", "entry_point", "dependencies", "instance_groups",
    "training_repository_access_mode", "training_repository_credentials_provider_arn", "enable_infra_check",
    "container_entry_point", "container_arguments", "disable_output_compression", "enable_remote_debug",
    "enable_session_tag_chaining", "training_plan", "instance_placement_config",
)  # fmt: skip
"""The parameters of EstimatorBase (SDK 2.257.7)."""

_GENERIC_PARAMETERS = (
    "image_uri", "role", "instance_count", "instance_type", "keep_alive_period_in_seconds", "volume_size",
    "volume_kms_key", "max_run", "input_mode", "output_path", "output_kms_key", "base_job_name", "sagemaker_session",
    "hyperparameters", "tags", "subnets", "security_group_ids", "model_uri", "model_channel_name",
    "metric_definitions", "encrypt_inter_container_traffic", "use_spot_instances", "max_wait", "checkpoint_s3_uri",
    "checkpoint_local_path", "enable_network_isolation", "rules", "debugger_hook_config", "tensorboard_output_config",
    "enable_sagemaker_metrics", "profiler_config", "disable_profiler", "environment", "max_retry_attempts",
    "source_dir", "git_config", "container_log_level", "code_location", "entry_point", "dependencies",
    "instance_groups", "training_repository_access_mode", "training_repository_credentials_provider_arn",
    "container_entry_point", "container_arguments", "disable_output_compression", "enable_infra_check",
    "enable_remote_debug", "enable_session_tag_chaining", "training_plan", "instance_placement_config",
)  # fmt: skip
"""The parameters of Estimator in order (SDK 2.257.7)."""

_SDK_1_NAMES = {
    "train_instance_count": "instance_count",
    "train_instance_type": "instance_type",
    "train_max_run": "max_run",
    "train_use_spot_instances": "use_spot_instances",
    "train_max_wait": "max_wait",
    "train_volume_size": "volume_size",
    "train_volume_kms_key": "volume_kms_key",
    "image_name": "image_uri",
    "distributions": "distribution",
}
"""The names of SDK 1 that SDK 2 still accepts, with their names in SDK 2."""

_DEFAULTS: Mapping[str, object] = {
    "volume_size": 30,
    "max_run": 86400,
    "input_mode": "File",
    "model_channel_name": "model",
    "use_spot_instances": False,
    "container_log_level": 20,
    "disable_output_compression": False,
}
"""The default values of arguments, for scripts that read them."""


class Estimator:
    """Replaces sagemaker.estimator.Estimator, and is the base class of the other estimators."""

    class_name: ClassVar[str] = "Estimator"
    positional_parameters: ClassVar[tuple[str, ...]] = _GENERIC_PARAMETERS
    latest_training_job: TrainingJob | None
    jobs: list[TrainingJob]
    _names: tuple[str, ...]
    _arguments: dict[str, object]
    _hyperparameters: dict[str, object]

    def __init__(self, *positional: object, **keywords: object) -> None:
        names = self.list_parameters()
        current = {_SDK_1_NAMES.get(name, name): value for name, value in keywords.items()}
        for old_name in keywords.keys() & _SDK_1_NAMES.keys():
            get_state().recorder.warn(f"{self.class_name}({old_name}=...): SDK 2's name is {_SDK_1_NAMES[old_name]}")
        arguments = bind_arguments(self.class_name, names, positional, current)
        check_session(self.class_name, arguments.get("sagemaker_session"))
        hyperparameters = arguments.pop("hyperparameters", None)
        if hyperparameters is not None and not isinstance(hyperparameters, dict):
            raise UnsupportedOperation(f"{self.class_name}(hyperparameters=...): a dictionary is expected")
        vars(self).update(
            _names=names,
            _arguments=arguments,
            _hyperparameters=self._store_hyperparameters(hyperparameters or {}),
            latest_training_job=None,
            jobs=[],
        )

    @classmethod
    def list_parameters(cls) -> tuple[str, ...]:
        """Return the names of all parameters, beginning with the positional parameters."""
        return (
            *cls.positional_parameters,
            *(name for name in _BASE_PARAMETERS if name not in cls.positional_parameters),
        )

    def _store_hyperparameters(self, hyperparameters: dict[str, object]) -> dict[str, object]:
        # As in the SDK, the generic estimator copies the dictionary, and a framework's estimator keeps a reference.
        return dict(hyperparameters)

    def __getattr__(self, name: str) -> object:
        if name.startswith("_"):
            raise AttributeError(name)
        if name == "sagemaker_session":
            return self._arguments.setdefault(name, Session())
        if name in self._names:
            return self._arguments.get(name, _DEFAULTS.get(name))
        return get_state().create_unknown(f"{self.class_name}.{name}")

    def __setattr__(self, name: str, value: object) -> None:
        if name in self._names and name != "hyperparameters":
            self._arguments[name] = value
            return
        if name not in vars(self):
            get_state().recorder.warn(f"{self.class_name}.{name} = ... has no effect: SDK 2 has no such attribute")
        vars(self)[name] = value

    @classmethod
    def attach(cls, *_: object, **__: object) -> UnknownValue:
        """Return an unknown value, because muster does not import a training job that exists already."""
        return get_state().create_unknown(f"{cls.class_name}.attach()")

    def set_hyperparameters(self, **hyperparameters: object) -> None:
        """Add hyperparameters."""
        self._hyperparameters.update(hyperparameters)

    def hyperparameters(self) -> dict[str, object]:
        """Return the hyperparameters, for scripts that read them."""
        return dict(self._hyperparameters)

    def enable_network_isolation(self) -> bool:
        return bool(self._arguments.get("enable_network_isolation"))

    def training_image_uri(self) -> object:
        """Return the training image, for scripts that read it."""
        return self._arguments.get("image_uri") or get_state().create_unknown(f"{self.class_name}.training_image_uri()")

    def fit(
        self,
        inputs: object = None,
        wait: object = True,  # noqa: ARG002, FBT002 - the SDK's signature
        logs: object = "All",  # noqa: ARG002 - the SDK's signature
        job_name: object = None,
        experiment_config: object = None,
    ) -> None:
        """Record a training job."""
        arguments = dict(self._arguments)
        session = arguments.pop("sagemaker_session", None)
        call = {"inputs": inputs, "job_name": job_name, "experiment_config": experiment_config}
        encoded_call = {name: encode(value, f"fit({name}=...)") for name, value in call.items() if value is not None}
        hyperparameters = {f"{name}": value for name, value in self._hyperparameters.items()}
        record = {
            "class": self.class_name,
            "arguments": {name: encode(value, f"{self.class_name}({name}=...)") for name, value in arguments.items()},
            "hyperparameters": encode(hyperparameters, f"{self.class_name}(hyperparameters=...)"),
            "call": encoded_call,
            "session": describe_session(session),
        }
        get_state().recorder.send("fit", record)
        name = str(job_name or arguments.get("base_job_name") or "")
        job = TrainingJob(self.class_name, name)
        vars(self)["latest_training_job"] = job
        self.jobs.append(job)


class Framework(Estimator):
    """Replaces sagemaker.estimator.Framework, the base class of the framework estimators."""

    class_name: ClassVar[str] = "Framework"
    positional_parameters: ClassVar[tuple[str, ...]] = (
        "entry_point", "source_dir", "hyperparameters", "container_log_level", "code_location", "image_uri",
        "dependencies", "enable_network_isolation", "git_config", "checkpoint_s3_uri", "checkpoint_local_path",
        "enable_sagemaker_metrics",
    )  # fmt: skip

    def _store_hyperparameters(self, hyperparameters: dict[str, object]) -> dict[str, object]:
        return hyperparameters

    def set_hyperparameters(self, **hyperparameters: object) -> None:
        """Add hyperparameters, encoded as JSON as in SDK 2, which encodes them once more for the request."""
        self._hyperparameters.update({name: json.dumps(value) for name, value in hyperparameters.items()})

    def hyperparameters(self) -> dict[str, object]:
        """Return the hyperparameters as the request contains them."""
        return {name: json.dumps(value) for name, value in self._hyperparameters.items()}


class PyTorch(Framework):
    """Replaces sagemaker.pytorch.PyTorch."""

    class_name: ClassVar[str] = "PyTorch"
    positional_parameters: ClassVar[tuple[str, ...]] = (
        "entry_point", "framework_version", "py_version", "source_dir", "hyperparameters", "image_uri", "distribution",
        "compiler_config", "training_recipe", "recipe_overrides",
    )  # fmt: skip


class TensorFlow(Framework):
    """Replaces sagemaker.tensorflow.TensorFlow."""

    class_name: ClassVar[str] = "TensorFlow"
    positional_parameters: ClassVar[tuple[str, ...]] = (
        "py_version", "framework_version", "model_dir", "image_uri", "distribution", "compiler_config",
    )  # fmt: skip


class HuggingFace(Framework):
    """Replaces sagemaker.huggingface.HuggingFace."""

    class_name: ClassVar[str] = "HuggingFace"
    positional_parameters: ClassVar[tuple[str, ...]] = (
        "py_version", "entry_point", "transformers_version", "tensorflow_version", "pytorch_version", "source_dir",
        "hyperparameters", "image_uri", "distribution", "compiler_config",
    )  # fmt: skip
