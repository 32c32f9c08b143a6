"""Convert an estimator's `distribution` to the job's launcher and to `sagemaker.distribution`. Pure.

The conversion follows the SDK (sagemaker 2.257.7: pytorch/estimator.py, estimator.py, fw_utils.py), which reads known
keys and ignores all others.
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
"""The strategies and keys that the SDK reads."""

_FIELDS = {
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
    """How the ranks start: `launcher` for every backend, `toolkit` for SageMaker's toolkit.

    `processes` is the number of ranks on each node; None leaves it to the launcher.
    """

    launcher: JSON
    toolkit: JSON
    processes: int | None = None


def convert_distribution(arguments: Arguments, block: Mapping[str, JSON], image: str | None) -> LauncherSettings:
    """Convert an estimator's distribution. `block` has its framework and instances, `image` is the user's image."""
    value = arguments.dictionary("distribution")
    where = arguments.where("distribution")
    problems = arguments.problems
    toolkit: dict[str, JSON] = {}
    for strategy, settings in value.items():
        if strategy == "instance_groups":
            set_field(toolkit, "instanceGroup", _convert_group(settings, where, problems))
        elif strategy == "smdistributed":
            toolkit.update(_convert_smdistributed(settings, where, problems))
        elif strategy in _STRATEGIES:
            toolkit[_FIELDS[strategy]] = _convert_strategy(strategy, settings, _STRATEGIES[strategy], where, problems)
        elif strategy == "pytorchxla":
            problems.add(where, "pytorchxla needs the training compiler, for which muster's jobs have no field")
        else:
            problems.warn(
                where, f"{strategy} is ignored, as by the SDK{_suggest_name(strategy, (*_STRATEGIES, 'smdistributed'))}"
            )
    return _split_distribution(remove_ignored_strategies(toolkit, block, image, where, problems))


def _split_distribution(toolkit: dict[str, JSON]) -> LauncherSettings:
    """Split off the portable part; the rest is unchanged, so that muster rejects the same values as the SDK."""
    processes: JSON = None
    toolkit_fields: dict[str, JSON] = {}
    for name, settings in toolkit.items():
        if not isinstance(settings, dict):
            toolkit_fields[name] = settings
            continue
        remaining = {key: value for key, value in settings.items() if (key, value) != ("enabled", True)}
        if settings.get("enabled") is True:
            processes = remaining.pop("processesPerHost", processes)
        toolkit_fields[name] = remaining
    return LauncherSettings(
        _choose_launcher(toolkit), toolkit_fields, processes if isinstance(processes, int) else None
    )


def _choose_launcher(toolkit: Mapping[str, JSON]) -> JSON:
    """Return the portable launcher: mpi for smdistributed, unless torchrun starts the ranks.

    Without a distribution the script runs once on each instance.
    """
    enabled = {
        name for name, settings in toolkit.items() if isinstance(settings, dict) and settings.get("enabled") is True
    }
    if "torchDistributed" in enabled:
        return {"torchrun": {}}
    return {"mpi": {}} if enabled & {"mpi", "dataParallel", "modelParallel", "pytorchDdp"} else {"perNode": {}}


def _convert_strategy(strategy: str, value: Value, allowed: tuple[str, ...], where: str, problems: Problems) -> JSON:
    if not isinstance(value, dict):
        problems.add(where, f"found {describe_value(value)} for {strategy}; a dictionary is expected")
        return {}
    for key in value.keys() - set(allowed):
        problems.warn(where, f"{strategy}: {key} is ignored, as by the SDK{_suggest_name(key, allowed)}")
    settings = Arguments(f"distribution[{strategy!r}][{{!r}}]", {key: value.get(key) for key in allowed}, problems)
    fields: dict[str, JSON] = {"enabled": settings.boolean("enabled") or False}
    set_field(fields, "processesPerHost", settings.integer("processes_per_host"))
    set_field(fields, "customMpiOptions", settings.text("custom_mpi_options"))
    parameters = settings.dictionary("parameters")
    set_field(
        fields, "parameters", {name: convert_plain_value(value, where, problems) for name, value in parameters.items()}
    )
    return fields


def _convert_smdistributed(value: Value, where: str, problems: Problems) -> dict[str, JSON]:
    if not isinstance(value, dict) or not value.keys() <= _SMDISTRIBUTED.keys() or len(value) != 1:
        problems.add(where, "smdistributed takes one of dataparallel and modelparallel")
        return {}
    return {
        _FIELDS[strategy]: _convert_strategy(strategy, settings, _SMDISTRIBUTED[strategy], where, problems)
        for strategy, settings in value.items()
    }


def _convert_group(value: Value, where: str, problems: Problems) -> str | None:
    match value:
        case [SdkObject("InstanceGroup", {"instance_group_name": str(name)})]:
            return name
    problems.add(where, "instance_groups takes a list of one InstanceGroup of the estimator's")
    return None


def convert_plain_value(value: Value, where: str, problems: Problems) -> JSON:
    """Return the value as JSON; report objects of the SDK's classes as problems."""
    if isinstance(value, SdkObject):
        problems.add(
            where, f"found {describe_value(value)}; text, numbers, truth values, lists and dictionaries are expected"
        )
        return None
    if isinstance(value, list):
        return [convert_plain_value(item, where, problems) for item in value]
    if isinstance(value, dict):
        return {name: convert_plain_value(item, where, problems) for name, item in value.items()}
    return value


def _suggest_name(name: str, allowed: tuple[str, ...]) -> str:
    close = difflib.get_close_matches(name, allowed, n=1)
    return f"; did you mean {close[0]}?" if close else ""
