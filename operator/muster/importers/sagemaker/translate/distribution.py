"""Convert an estimator's `distribution` to the job's launcher and to `sagemaker.distribution`. Pure.

The SDK's behaviour counts (sagemaker 2.257.7: pytorch/estimator.py, estimator.py, fw_utils.py): it looks up the keys
that it knows and ignores all others.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass

from muster.api.document import JSON
from muster.importers.sagemaker.translate.estimator.ignored_ways import without_ignored
from muster.importers.sagemaker.translate.reading import Arguments, Problems, set_field, shown
from muster.importers.sagemaker.translate.recording import Built, Value

_KNOWN: Mapping[str, tuple[str, ...]] = {
    "torch_distributed": ("enabled",),
    "pytorchddp": ("enabled", "custom_mpi_options"),
    "mpi": ("enabled", "processes_per_host", "custom_mpi_options"),
    "parameter_server": ("enabled",),
    "multi_worker_mirrored_strategy": ("enabled",),
}
_PARALLEL: Mapping[str, tuple[str, ...]] = {
    "dataparallel": ("enabled", "custom_mpi_options"),
    "modelparallel": ("enabled", "parameters"),
}
"""The strategies and the keys that the SDK looks up."""

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
class Distributed:
    """How the ranks start: `launcher` for every backend, `toolkit` for SageMaker's toolkit.

    `processes` is the number of ranks on each node; None leaves it to the launcher.
    """

    launcher: JSON
    toolkit: JSON
    processes: int | None = None


def distributed(arguments: Arguments, block: Mapping[str, JSON], image: str | None) -> Distributed:
    """Find out how an estimator's ranks start. `block` has its framework and instances, `image` is the user's own."""
    value = arguments.dictionary("distribution")
    where = arguments.where("distribution")
    problems = arguments.problems
    toolkit: dict[str, JSON] = {}
    for strategy, settings in value.items():
        if strategy == "instance_groups":
            set_field(toolkit, "instanceGroup", _group(settings, where, problems))
        elif strategy == "smdistributed":
            toolkit.update(_parallel(settings, where, problems))
        elif strategy in _KNOWN:
            toolkit[_FIELDS[strategy]] = _settings(strategy, settings, _KNOWN[strategy], where, problems)
        elif strategy == "pytorchxla":
            problems.add(where, "pytorchxla needs the training compiler, for which muster's jobs have no field")
        else:
            problems.warn(where, f"{strategy} is ignored, as by the SDK{_meant(strategy, (*_KNOWN, 'smdistributed'))}")
    return _divided(without_ignored(toolkit, block, image, where, problems))


def _divided(toolkit: dict[str, JSON]) -> Distributed:
    """Split the portable part from the rest; the rest stays as written, so that muster rejects what the SDK rejects."""
    processes: JSON = None
    rest: dict[str, JSON] = {}
    for name, settings in toolkit.items():
        if not isinstance(settings, dict):
            rest[name] = settings
            continue
        kept = {key: value for key, value in settings.items() if (key, value) != ("enabled", True)}
        if settings.get("enabled") is True:
            processes = kept.pop("processesPerHost", processes)
        rest[name] = kept
    return Distributed(_launcher(toolkit), rest, processes if isinstance(processes, int) else None)


def _launcher(toolkit: Mapping[str, JSON]) -> JSON:
    """The portable launcher: mpi for smdistributed, unless torchrun starts the ranks.

    Without a distribution the script runs once on each instance.
    """
    on = {name for name, settings in toolkit.items() if isinstance(settings, dict) and settings.get("enabled") is True}
    if "torchDistributed" in on:
        return {"torchrun": {}}
    return {"mpi": {}} if on & {"mpi", "dataParallel", "modelParallel", "pytorchDdp"} else {"perNode": {}}


def _settings(strategy: str, value: Value, allowed: tuple[str, ...], where: str, problems: Problems) -> JSON:
    if not isinstance(value, dict):
        problems.add(where, f"found {shown(value)} for {strategy}; a dictionary is expected")
        return {}
    for key in value.keys() - set(allowed):
        problems.warn(where, f"{strategy}: {key} is ignored, as by the SDK{_meant(key, allowed)}")
    settings = Arguments(f"distribution[{strategy!r}][{{!r}}]", {key: value.get(key) for key in allowed}, problems)
    fields: dict[str, JSON] = {"enabled": settings.truth("enabled") or False}
    set_field(fields, "processesPerHost", settings.whole("processes_per_host"))
    set_field(fields, "customMpiOptions", settings.text("custom_mpi_options"))
    parameters = settings.dictionary("parameters")
    set_field(fields, "parameters", {name: plain(value, where, problems) for name, value in parameters.items()})
    return fields


def _parallel(value: Value, where: str, problems: Problems) -> dict[str, JSON]:
    if not isinstance(value, dict) or not value.keys() <= _PARALLEL.keys() or len(value) != 1:
        problems.add(where, "smdistributed takes one of dataparallel and modelparallel")
        return {}
    return {
        _FIELDS[strategy]: _settings(strategy, settings, _PARALLEL[strategy], where, problems)
        for strategy, settings in value.items()
    }


def _group(value: Value, where: str, problems: Problems) -> str | None:
    match value:
        case [Built("InstanceGroup", {"instance_group_name": str(name)})]:
            return name
    problems.add(where, "instance_groups takes a list of one InstanceGroup of the estimator's")
    return None


def plain(value: Value, where: str, problems: Problems) -> JSON:
    """Return a value without objects of the SDK's classes."""
    if isinstance(value, Built):
        problems.add(where, f"found {shown(value)}; text, numbers, truth values, lists and dictionaries are expected")
        return None
    if isinstance(value, list):
        return [plain(item, where, problems) for item in value]
    if isinstance(value, dict):
        return {name: plain(item, where, problems) for name, item in value.items()}
    return value


def _meant(name: str, allowed: tuple[str, ...]) -> str:
    close = difflib.get_close_matches(name, allowed, n=1)
    return f"; did you mean {close[0]}?" if close else ""
