"""Explain each field of a SageMaker job's request with its source and its reason. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator

from muster.api.document import JSON
from muster.api.spec.job import Job
from muster.api.spec.sagemaker.block import get_sagemaker_block
from muster.api.spec.sagemaker.launch import START_SCRIPT, Launch, decide_launch
from muster.cli.explain.explanation import Explanation
from muster.cli.explain.training_origins import GROUPS, find_origin
from muster.render.sagemaker.request.training_request import TrainingRequest

_SDK = "the SageMaker SDK's default"

_PAIRS = ({"Key", "Value"}, {"Name", "Regex"})
"""The keys of objects that hold a name and its value: tags and metrics."""


def explain_training_request(job: Job, request: TrainingRequest) -> tuple[Explanation, ...]:
    """Explain every field of the request, in the order of `GROUPS`."""
    result = [_explain_field(job, setting, value) for setting, value in _find_leaves("", request.body)]
    return tuple(sorted(result, key=lambda entry: GROUPS.index(entry.group)))


def _find_leaves(path: str, value: JSON) -> Iterator[tuple[str, JSON]]:
    if isinstance(value, dict) and value.keys() in _PAIRS:
        yield path, next(reversed(value.values()))
    elif isinstance(value, dict) and value:
        for name, item in value.items():
            yield from _find_leaves(f"{path}.{name}" if path else name, item)
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        for index, item in enumerate(value):
            yield from _find_leaves(f"{path}[{_make_label(item, index)}]", item)
    else:
        yield path, value


def _make_label(item: JSON, index: int) -> str:
    names = ("ChannelName", "Name", "Key", "InstanceGroupName", "RuleConfigurationName", "CollectionName")
    result = next((str(item[name]) for name in names if name in item), None) if isinstance(item, dict) else None
    return str(index) if result is None else result


def _explain_field(job: Job, setting: str, value: JSON) -> Explanation:
    result = find_origin(setting)
    text = value if isinstance(value, str) else json.dumps(value)
    source, why = _find_job_source(job, setting, text) or (result.source, result.reason)
    return Explanation(result.group, setting, text, source, why)


def _find_job_source(job: Job, setting: str, value: str) -> tuple[str, str] | None:
    """Return the source and reason of a value that depends on the job; None for other values."""
    spec, block = job.spec, get_sagemaker_block(job.spec)
    start = decide_launch(spec)
    if setting == "AlgorithmSpecification.TrainingImage" and spec.image is not None:
        return "spec.image", "yours"
    if setting.startswith("AlgorithmSpecification.Container") and block.container_entrypoint:
        return "spec.sagemaker.containerEntrypoint", "yours, unchanged"
    if setting == "HyperParameters.sagemaker_program" and json.loads(value) != start.program:
        return "spec.sagemaker.rankReports", f"this script starts {start.program} and reports on the ranks to muster"
    if setting == "HyperParameters.sagemaker_program" and start.uses_start_script:
        return "muster", f"{START_SCRIPT} runs the command: {_explain_start_script(job, start)}"
    if setting.startswith("HyperParameters.sagemaker_") and setting.endswith("_enabled") and block.distribution is None:
        return "spec.launcher", "SageMaker's distribution for this launcher"
    return _find_default_source(job, setting)


def _explain_start_script(job: Job, start: Launch) -> str:
    if start.start == "Container":
        return "the container has no toolkit"
    is_of_command = job.spec.launcher.chosen_launcher.command_starts_ranks
    return "the toolkit starts files only" if is_of_command else "the toolkit can't start ranks this way"


def _find_default_source(job: Job, setting: str) -> tuple[str, str] | None:
    """Return the source and reason of a default value; None if the job sets the value."""
    block = get_sagemaker_block(job.spec)
    set_fields = block.model_fields_set
    has_output = job.spec.output is not None and job.spec.output.s3 is not None
    is_default_by_field = {
        "OutputDataConfig.S3OutputPath": not has_output,
        "DebugHookConfig": "debugger" not in set_fields,
        "ProfilerConfig": "profiler" not in set_fields,
        "ResourceConfig.VolumeSizeInGB": "volume_size_gb" not in set_fields,
        "StoppingCondition.MaxRuntimeInSeconds": "max_run_seconds" not in set_fields,
        "AlgorithmSpecification.TrainingInputMode": "input_mode" not in set_fields,
        "AlgorithmSpecification.EnableSageMakerMetrics": "metrics_time_series" not in set_fields,
        "HyperParameters.sagemaker_container_log_level": "container_log_level" not in set_fields,
    }
    is_default = any(setting.startswith(field) and is_unset for field, is_unset in is_default_by_field.items())
    return ("muster", _SDK) if is_default else None
