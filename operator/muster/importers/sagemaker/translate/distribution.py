"""Convert an estimator's `distribution` to the job's launcher and to `sagemaker.distribution`. Pure.

The conversion follows the SDK (sagemaker 2.257.7: pytorch/estimator.py, estimator.py, fw_utils.py), which ignores
unknown keys.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass

from muster.api.document import JSON
from muster.importers.sagemaker.translate.arguments import Arguments, Problems, describe_value, set_field
from muster.importers.sagemaker.translate.estimator.ignored_strategies import remove_ignored_strategies
from muster.importers.sagemaker.translate.recording import SdkObject, Value

_STRATEGIES: Mapping[str, tuple[str, ...]] = {
    "torch_distributed": ("enabled",),
    "pytorchddp": ("enabled", "custom_mpi_options"),
    "mpi": ("enabled", "processes_per_host", "custom_mpi_options"),
    "parameter_server": ("enabled",),
    "multi_worker_mirrored_strategy": ("enabled",),
}
_SMDISTRIBUTED: Mapping[str, tuple[str, ...]] = {
    "dataparallel": ("enabled", "custom_mpi_options"),
    "modelparallel": ("enabled", "parameters"),
}
"""The strategies that the SDK supports, each with its keys."""

_FIELD_NAMES = {
    "torch_distributed": "torchDistributed",
    "pytorchddp": "pytorchDdp",
    "mpi": "mpi",
    "parameter_server": "parameterServer",
    "multi_worker_mirrored_strategy": "multiWorkerMirrored",
    "dataparallel": "dataParallel",
    "modelparallel": "modelParallel",
}


@dataclass(frozen=True)
class LauncherSettings:
    """How the ranks start: the job's launcher, and the settings for SageMaker's toolkit.

    `procs_per_node` is the number of ranks on each node; if it is None, the launcher determines the number.
    """

    launcher: JSON
    toolkit: JSON
    procs_per_node: int | None = None


def convert_distribution(
    arguments: Arguments, sagemaker_fields: Mapping[str, JSON], image: str | None
) -> LauncherSettings:
    """Convert an estimator's distribution.

    `sagemaker_fields` has the estimator's framework and instances. `image` is the user's image.
    """
    value = arguments.take_dictionary("distribution")
    location = arguments.describe_argument("distribution")
    problems = arguments.problems
    toolkit: dict[str, JSON] = {}
    for strategy, settings in value.items():
        if strategy == "instance_groups":
            set_field(toolkit, "instanceGroup", _convert_group(settings, location, problems))
        elif strategy == "smdistributed":
            toolkit.update(_convert_smdistributed(settings, location, problems))
        elif strategy in _STRATEGIES:
            toolkit[_FIELD_NAMES[strategy]] = _convert_strategy(
                strategy, settings, _STRATEGIES[strategy], location, problems
            )
        elif strategy == "pytorchxla":
            problems.add(location, "pytorchxla needs the training compiler, for which a job has no field")
        else:
            problems.warn(
                location,
                f"muster ignores {strategy}, as the SDK does{_suggest_name(strategy, (*_STRATEGIES, 'smdistributed'))}",
            )
    return _split_distribution(remove_ignored_strategies(toolkit, sagemaker_fields, image, location, problems))


def _split_distribution(toolkit: dict[str, JSON]) -> LauncherSettings:
    """Separate the launcher and the number of ranks from the toolkit's settings, and keep the other settings."""
    procs_per_node: JSON = None
    toolkit_fields: dict[str, JSON] = {}
    for name, settings in toolkit.items():
        if not isinstance(settings, dict):
            toolkit_fields[name] = settings
            continue
        remaining = {key: value for key, value in settings.items() if (key, value) != ("enabled", True)}
        if settings.get("enabled") is True:
            procs_per_node = remaining.pop("processesPerHost", procs_per_node)
        toolkit_fields[name] = remaining
    return LauncherSettings(
        _choose_launcher(toolkit), toolkit_fields, procs_per_node if isinstance(procs_per_node, int) else None
    )


def _choose_launcher(toolkit: Mapping[str, JSON]) -> JSON:
    """Return the launcher for all backends: mpi for smdistributed, unless torchrun starts the ranks.

    Without a distribution, the script runs once on each instance.
    """
    enabled_strategies = {
        name for name, settings in toolkit.items() if isinstance(settings, dict) and settings.get("enabled") is True
    }
    if "torchDistributed" in enabled_strategies:
        return {"torchrun": {}}
    return (
        {"mpi": {}} if enabled_strategies & {"mpi", "dataParallel", "modelParallel", "pytorchDdp"} else {"perNode": {}}
    )


def _convert_strategy(strategy: str, value: Value, allowed: tuple[str, ...], location: str, problems: Problems) -> JSON:
    if not isinstance(value, dict):
        problems.add(location, f"found {describe_value(value)} for {strategy}; a dictionary is expected")
        return {}
    for key in value.keys() - set(allowed):
        problems.warn(location, f"muster ignores {key} of {strategy}, as the SDK does{_suggest_name(key, allowed)}")
    settings = Arguments(f"distribution[{strategy!r}][{{!r}}]", {key: value.get(key) for key in allowed}, problems)
    fields: dict[str, JSON] = {"enabled": settings.take_boolean("enabled") or False}
    set_field(fields, "processesPerHost", settings.take_integer("processes_per_host"))
    set_field(fields, "customMpiOptions", settings.take_text("custom_mpi_options"))
    parameters = settings.take_dictionary("parameters")
    set_field(
        fields,
        "parameters",
        {name: convert_plain_value(value, location, problems) for name, value in parameters.items()},
    )
    return fields


def _convert_smdistributed(value: Value, location: str, problems: Problems) -> dict[str, JSON]:
    if not isinstance(value, dict) or not value.keys() <= _SMDISTRIBUTED.keys() or len(value) != 1:
        problems.add(location, "smdistributed needs one of dataparallel and modelparallel")
        return {}
    return {
        _FIELD_NAMES[strategy]: _convert_strategy(strategy, settings, _SMDISTRIBUTED[strategy], location, problems)
        for strategy, settings in value.items()
    }


def _convert_group(value: Value, location: str, problems: Problems) -> str | None:
    match value:
        case [SdkObject("InstanceGroup", {"instance_group_name": str(name)})]:
            return name
    problems.add(location, "instance_groups needs a list of one InstanceGroup")
    return None


def convert_plain_value(value: Value, location: str, problems: Problems) -> JSON:
    """Return the value as JSON, and report objects of the SDK's classes as problems."""
    if isinstance(value, SdkObject):
        problems.add(
            location, f"found {describe_value(value)}; text, numbers, truth values, lists and dictionaries are expected"
        )
        return None
    if isinstance(value, list):
        return [convert_plain_value(item, location, problems) for item in value]
    if isinstance(value, dict):
        return {name: convert_plain_value(item, location, problems) for name, item in value.items()}
    return value


def _suggest_name(name: str, allowed: tuple[str, ...]) -> str:
    close_matches = difflib.get_close_matches(name, allowed, n=1)
    return f"; did you mean {close_matches[0]}?" if close_matches else ""
