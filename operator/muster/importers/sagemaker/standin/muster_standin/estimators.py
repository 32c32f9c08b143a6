"""The stand-ins for SDK 2's estimators, which record their arguments when the script calls `fit`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import ClassVar

from .arguments import bind_arguments
from .errors import Unsupported
from .session import Session
from .state import current_state
from .training import TrainingJob, check_session, session_facts
from .unknown import Unknown
from .values import encode

_BASE = (
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

_GENERIC_FIRST = (
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
"""The parameters of Estimator in their order."""

_RENAMED = {
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
"""Names of SDK 1 that SDK 2 still accepts."""

_DEFAULTS: Mapping[str, object] = {
    "volume_size": 30,
    "max_run": 86400,
    "input_mode": "File",
    "model_channel_name": "model",
    "use_spot_instances": False,
    "container_log_level": 20,
    "disable_output_compression": False,
}
"""Defaults of arguments, for scripts that read them."""


class Estimator:
    """The generic estimator, and the base class of the others."""

    kind: ClassVar[str] = "Estimator"
    first: ClassVar[tuple[str, ...]] = _GENERIC_FIRST
    latest_training_job: TrainingJob | None
    jobs: list[TrainingJob]
    _names: tuple[str, ...]
    _arguments: dict[str, object]
    _hyperparameters: dict[str, object]

    def __init__(self, *positional: object, **named: object) -> None:
        names = self.parameters()
        current = {_RENAMED.get(name, name): value for name, value in named.items()}
        for old in named.keys() & _RENAMED.keys():
            current_state().recorder.warn(f"{self.kind}({old}=...): SDK 2's name is {_RENAMED[old]}")
        arguments = bind_arguments(self.kind, names, positional, current)
        check_session(self.kind, arguments.get("sagemaker_session"))
        hyperparameters = arguments.pop("hyperparameters", None)
        if hyperparameters is not None and not isinstance(hyperparameters, dict):
            raise Unsupported(f"{self.kind}(hyperparameters=...): a dictionary is expected")
        vars(self).update(
            _names=names,
            _arguments=arguments,
            _hyperparameters=self._kept(hyperparameters or {}),
            latest_training_job=None,
            jobs=[],
        )

    @classmethod
    def parameters(cls) -> tuple[str, ...]:
        """The names of all parameters, positional ones first."""
        return (*cls.first, *(name for name in _BASE if name not in cls.first))

    def _kept(self, hyperparameters: dict[str, object]) -> dict[str, object]:
        # as in the SDK: the generic estimator copies the dictionary, a framework's estimator keeps a reference
        return dict(hyperparameters)

    def __getattr__(self, name: str) -> object:
        if name.startswith("_"):
            raise AttributeError(name)
        if name == "sagemaker_session":
            return self._arguments.setdefault(name, Session())
        if name in self._names:
            return self._arguments.get(name, _DEFAULTS.get(name))
        return current_state().unknown(f"{self.kind}.{name}")

    def __setattr__(self, name: str, value: object) -> None:
        if name in self._names and name != "hyperparameters":
            self._arguments[name] = value
            return
        if name not in vars(self):
            current_state().recorder.warn(f"{self.kind}.{name} = ... has no effect: SDK 2 has no such attribute")
        vars(self)[name] = value

    @classmethod
    def attach(cls, *_: object, **__: object) -> Unknown:
        """Return an unknown value: the training job exists already, and muster does not import it."""
        return current_state().unknown(f"{cls.kind}.attach()")

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
        return self._arguments.get("image_uri") or current_state().unknown(f"{self.kind}.training_image_uri()")

    def fit(
        self,
        inputs: object = None,
        wait: object = True,  # noqa: ARG002, FBT002 - the SDK's signature
        logs: object = "All",  # noqa: ARG002 - as above
        job_name: object = None,
        experiment_config: object = None,
    ) -> None:
        """Record a training job."""
        arguments = dict(self._arguments)
        session = arguments.pop("sagemaker_session", None)
        call = {"inputs": inputs, "job_name": job_name, "experiment_config": experiment_config}
        called = {name: encode(value, f"fit({name}=...)") for name, value in call.items() if value is not None}
        hyperparameters = {f"{name}": value for name, value in self._hyperparameters.items()}
        record = {
            "class": self.kind,
            "arguments": {name: encode(value, f"{self.kind}({name}=...)") for name, value in arguments.items()},
            "hyperparameters": encode(hyperparameters, f"{self.kind}(hyperparameters=...)"),
            "call": called,
            "session": session_facts(session),
        }
        current_state().recorder.send("fit", record)
        name = str(job_name or arguments.get("base_job_name") or "")
        job = TrainingJob(self.kind, name)
        vars(self)["latest_training_job"] = job
        self.jobs.append(job)


class Framework(Estimator):
    """The base class of the framework estimators."""

    kind: ClassVar[str] = "Framework"
    first: ClassVar[tuple[str, ...]] = (
        "entry_point", "source_dir", "hyperparameters", "container_log_level", "code_location", "image_uri",
        "dependencies", "enable_network_isolation", "git_config", "checkpoint_s3_uri", "checkpoint_local_path",
        "enable_sagemaker_metrics",
    )  # fmt: skip

    def _kept(self, hyperparameters: dict[str, object]) -> dict[str, object]:
        return hyperparameters

    def set_hyperparameters(self, **hyperparameters: object) -> None:
        """Add hyperparameters, encoded as JSON as in SDK 2 (which encodes them again in the request)."""
        self._hyperparameters.update({name: json.dumps(value) for name, value in hyperparameters.items()})

    def hyperparameters(self) -> dict[str, object]:
        """Return the hyperparameters of the request."""
        return {name: json.dumps(value) for name, value in self._hyperparameters.items()}


class PyTorch(Framework):
    """sagemaker.pytorch.PyTorch."""

    kind: ClassVar[str] = "PyTorch"
    first: ClassVar[tuple[str, ...]] = (
        "entry_point", "framework_version", "py_version", "source_dir", "hyperparameters", "image_uri", "distribution",
        "compiler_config", "training_recipe", "recipe_overrides",
    )  # fmt: skip


class TensorFlow(Framework):
    """sagemaker.tensorflow.TensorFlow."""

    kind: ClassVar[str] = "TensorFlow"
    first: ClassVar[tuple[str, ...]] = (
        "py_version", "framework_version", "model_dir", "image_uri", "distribution", "compiler_config",
    )  # fmt: skip


class HuggingFace(Framework):
    """sagemaker.huggingface.HuggingFace."""

    kind: ClassVar[str] = "HuggingFace"
    first: ClassVar[tuple[str, ...]] = (
        "py_version", "entry_point", "transformers_version", "tensorflow_version", "pytorch_version", "source_dir",
        "hyperparameters", "image_uri", "distribution", "compiler_config",
    )  # fmt: skip
