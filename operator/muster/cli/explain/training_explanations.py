"""Explain what muster sends for a job on SageMaker, field by field: the source of each value, and why. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator

from muster.api.document import JSON
from muster.api.spec.job import Job
from muster.api.spec.sagemaker.block import block_of
from muster.api.spec.sagemaker.launch import START_SCRIPT, Launch, launch
from muster.cli.explain.explanation import Explanation
from muster.cli.explain.training_origins import GROUPS, origin
from muster.render.sagemaker.request.training_request import TrainingRequest

_SDK = "the SageMaker SDK's default"

_PAIRS = ({"Key", "Value"}, {"Name", "Regex"})
"""A name with its value: tags and metrics."""


def training_explanations(job: Job, made: TrainingRequest) -> tuple[Explanation, ...]:
    """Explain every field of the request, in the order of `GROUPS`."""
    result = [_explained(job, setting, value) for setting, value in _leaves("", made.body)]
    return tuple(sorted(result, key=lambda each: GROUPS.index(each.group)))


def _leaves(path: str, value: JSON) -> Iterator[tuple[str, JSON]]:
    if isinstance(value, dict) and value.keys() in _PAIRS:
        yield path, next(reversed(value.values()))
    elif isinstance(value, dict) and value:
        for name, item in value.items():
            yield from _leaves(f"{path}.{name}" if path else name, item)
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        for index, item in enumerate(value):
            yield from _leaves(f"{path}[{_label(item, index)}]", item)
    else:
        yield path, value


def _label(item: JSON, index: int) -> str:
    names = ("ChannelName", "Name", "Key", "InstanceGroupName", "RuleConfigurationName", "CollectionName")
    result = next((str(item[name]) for name in names if name in item), None) if isinstance(item, dict) else None
    return str(index) if result is None else result


def _explained(job: Job, setting: str, value: JSON) -> Explanation:
    result = origin(setting)
    text = value if isinstance(value, str) else json.dumps(value)
    source, why = _particular(job, setting, text) or (result.source, result.why)
    return Explanation(result.group, setting, text, source, why)


def _particular(job: Job, setting: str, value: str) -> tuple[str, str] | None:
    """Sources that depend on the job: its own value instead of a default, and muster's default without one."""
    spec, block = job.spec, block_of(job.spec)
    how = launch(spec)
    if setting == "AlgorithmSpecification.TrainingImage" and spec.image is not None:
        return "spec.image", "yours"
    if setting.startswith("AlgorithmSpecification.Container") and block.container_entrypoint:
        return "spec.sagemaker.containerEntrypoint", "yours, unchanged"
    if setting == "HyperParameters.sagemaker_program" and json.loads(value) != how.program:
        return "spec.sagemaker.rankReports", f"it starts {how.program}, and reports on the ranks to muster"
    if setting == "HyperParameters.sagemaker_program" and how.by_script:
        return "muster", f"{START_SCRIPT} runs the command: {_why_script(job, how)}"
    if setting.startswith("HyperParameters.sagemaker_") and setting.endswith("_enabled") and block.distribution is None:
        return "spec.launcher", "SageMaker's distribution for this launcher"
    return _default(job, setting)


def _why_script(job: Job, how: Launch) -> str:
    if how.start == "Container":
        return "the container has no toolkit"
    is_of_command = job.spec.launcher.chosen.command_starts_ranks
    return "the toolkit starts files only" if is_of_command else "the toolkit can't start ranks this way"


def _default(job: Job, setting: str) -> tuple[str, str] | None:
    """The source of a value that the job does not set."""
    block = block_of(job.spec)
    set_fields = block.model_fields_set
    own_output = job.spec.output is not None and job.spec.output.s3 is not None
    unsaid = {
        "OutputDataConfig.S3OutputPath": not own_output,
        "DebugHookConfig": "debugger" not in set_fields,
        "ProfilerConfig": "profiler" not in set_fields,
        "ResourceConfig.VolumeSizeInGB": "volume_size_gb" not in set_fields,
        "StoppingCondition.MaxRuntimeInSeconds": "max_run_seconds" not in set_fields,
        "AlgorithmSpecification.TrainingInputMode": "input_mode" not in set_fields,
        "AlgorithmSpecification.EnableSageMakerMetrics": "metrics_time_series" not in set_fields,
        "HyperParameters.sagemaker_container_log_level": "container_log_level" not in set_fields,
    }
    is_default = any(setting.startswith(field) and left for field, left in unsaid.items())
    return ("muster", _SDK) if is_default else None
