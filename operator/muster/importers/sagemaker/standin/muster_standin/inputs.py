"""The stand-ins for SDK 2's smaller classes: channels, instance groups, Debugger and profiler."""

from __future__ import annotations

from .arguments import bind_arguments
from .aws import BotoSession
from .config_objects import ConfigObject, create_config_class
from .errors import UnsupportedOperation
from .state import get_state
from .unknown import UnknownValue

_PROFILE_PARAMETERS = ("start_step", "num_steps", "start_unix_time", "duration", "profile_default_steps")

_INPUT_PARAMETERS = {
    "TrainingInput": (
        "s3_data", "distribution", "compression", "content_type", "record_wrapping", "s3_data_type", "instance_groups",
        "input_mode", "attribute_names", "target_attribute_name", "shuffle_config", "hub_access_config",
        "model_access_config",
    ),
    "FileSystemInput": (
        "file_system_id", "file_system_type", "directory_path", "file_system_access_mode", "content_type",
    ),
    "ShuffleConfig": ("seed",),
    "InstanceGroup": ("instance_group_name", "instance_type", "instance_count"),
}  # fmt: skip
"""The parameters of the classes in sagemaker.inputs and sagemaker.instance_group (SDK 2.257.7)."""

_DEBUGGER_PARAMETERS = {
    "CollectionConfig": ("name", "parameters"),
    "DebuggerHookConfig": ("s3_output_path", "container_local_output_path", "hook_parameters", "collection_configs"),
    "TensorBoardOutputConfig": ("s3_output_path", "container_local_output_path"),
    "ProfilerConfig": (
        "s3_output_path", "system_monitor_interval_millis", "framework_profile_params", "profile_params",
        "disable_profiler",
    ),
    "Profiler": ("cpu_profiling_duration", "file_rotation_interval"),
    "FrameworkProfile": (
        "local_path", "file_max_size", "file_close_interval", "file_open_fail_threshold", "detailed_profiling_config",
        "dataloader_profiling_config", "python_profiling_config", "horovod_profiling_config",
        "smdataparallel_profiling_config", "start_step", "num_steps", "start_unix_time", "duration",
    ),
    "DetailedProfilingConfig": _PROFILE_PARAMETERS,
    "DataloaderProfilingConfig": (*_PROFILE_PARAMETERS, "metrics_regex"),
    "PythonProfilingConfig": (*_PROFILE_PARAMETERS, "python_profiler", "cprofile_timer"),
    "HorovodProfilingConfig": _PROFILE_PARAMETERS,
    "SMDataParallelProfilingConfig": _PROFILE_PARAMETERS,
}  # fmt: skip
"""The parameters of the classes in sagemaker.debugger (SDK 2.257.7)."""

_RULE_PARAMETERS = (
    "name", "image_uri", "instance_type", "volume_size_in_gb", "source", "rule_to_invoke",
    "container_local_output_path", "s3_output_path", "other_trials_s3_input_paths", "rule_parameters",
    "collections_to_save", "actions",
)  # fmt: skip

INPUTS: dict[str, type[ConfigObject]] = {
    name: create_config_class(name, fields, positional=True) for name, fields in _INPUT_PARAMETERS.items()
}
DEBUGGER: dict[str, type[ConfigObject]] = {
    name: create_config_class(name, fields, positional=True) for name, fields in _DEBUGGER_PARAMETERS.items()
}
TrainingCompilerConfig = create_config_class("TrainingCompilerConfig", ("enabled", "debug"), positional=True)

CustomRule = create_config_class("Rule", _RULE_PARAMETERS, positional=True)
CustomProfilerRule = create_config_class("ProfilerRule", (*_RULE_PARAMETERS[:8], "rule_parameters"), positional=True)


class Rule:
    """Replaces sagemaker.debugger.Rule for custom rules. Another package defines the built-in rules."""

    _custom = CustomRule
    _field = "debugger"

    @classmethod
    def custom(cls, *positional: object, **keywords: object) -> ConfigObject:
        return cls._custom(*positional, **keywords)

    @classmethod
    def sagemaker(cls, *_: object, **__: object) -> UnknownValue:
        raise UnsupportedOperation(
            f"{cls.__name__}.sagemaker(...): the package smdebug_rulesconfig defines the built-in rules; "
            f"write the rule under spec.sagemaker.{cls._field}.rules, with the parameter rule_to_invoke"
        )


class ProfilerRule(Rule):
    """Replaces sagemaker.debugger.ProfilerRule for custom rules."""

    _custom = CustomProfilerRule
    _field = "profiler"


RETRIEVE = (
    *("version", "py_version", "instance_type", "accelerator_type", "image_scope", "container_version"),
    *("distribution", "base_framework_version", "training_compiler_config", "model_id", "model_version", "hub_arn"),
    *("tolerate_vulnerable_model", "tolerate_deprecated_model", "sdk_version", "inference_tool"),
    *("serverless_inference_config", "sagemaker_session", "config_name", "model_type"),
)
"""The parameters of image_uris.retrieve after framework and region, in order (SDK 2.257.7)."""


def retrieve(framework: str, region: str | None = None, *positional: object, **keywords: object) -> str:
    """Replaces sagemaker.image_uris.retrieve. muster returns the URIs of training images."""
    arguments = bind_arguments("image_uris.retrieve", RETRIEVE, positional, keywords)
    scope = arguments.get("image_scope")
    if scope not in {None, "training"}:
        return str(get_state().create_unknown(f"image_uris.retrieve({framework!r}, image_scope={scope!r})"))
    selected = {name: str(value) for name, value in arguments.items() if value is not None}
    return get_state().recorder.ask(
        "image", {"framework": framework, "region": region or BotoSession().region_name, **selected}
    )
