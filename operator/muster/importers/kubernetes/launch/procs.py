"""How many ranks run on each node: the values of nproc_per_node, and the devices of a container. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from muster.api.document import JSON
from muster.api.validation.messages import describe_value
from muster.importers.kubernetes.report import Location, Report

_DEVICES = ("nvidia.com/gpu", "amd.com/gpu", "aws.amazon.com/neuron", "aws.amazon.com/neuroncore")
"""The devices that procsPerNode: Auto counts."""

_OTHER_DEVICE = re.compile(r".*/.*(gpu|mig-|gaudi|tpu|npu|xpu).*", re.IGNORECASE)

_NUMBERS = "auto, cpu, gpu and whole numbers"


@dataclass(frozen=True)
class Procs:
    """The number of ranks on each node, as the manifest says it.

    `cpu_count` is what auto means without a GPU, if the manifest says so.
    """

    value: JSON
    location: Location
    cpu_count: int | None = None


def has_devices(resources: Mapping[str, JSON]) -> bool:
    """Whether procsPerNode: Auto finds devices in these quantities."""
    return any(name in _DEVICES and str(quantity) != "0" for name, quantity in resources.items())


def is_device(name: str) -> bool:
    """Whether procsPerNode: Auto counts this resource."""
    return name in _DEVICES


def resolve_procs(procs: Procs, resources: Mapping[str, JSON], report: Report) -> int | str | None:
    """Return the value of procsPerNode; None with a problem."""
    value = procs.value
    number = int(value) if isinstance(value, str) and re.fullmatch("[0-9]{1,9}", value) else value
    if isinstance(number, int) and not isinstance(number, bool) and number > 0:
        return number
    if value == "auto":
        return _resolve_auto(procs, resources, report)
    return _resolve_word(value, procs, resources, report)


def _resolve_word(value: JSON, procs: Procs, resources: Mapping[str, JSON], report: Report) -> int | str | None:
    if value == "gpu" and has_devices(resources):
        return "Auto"
    if value == "cpu" and procs.cpu_count is not None:
        return procs.cpu_count
    problems = {
        "gpu": "found gpu, but the container requests no GPU; request GPUs, or write a number",
        "cpu": "found cpu, one rank for each CPU of the machine, which muster doesn't know; write a number",
    }
    other_problem = f"found {describe_value(value)}; allowed are {_NUMBERS}"
    report.add(procs.location, problems.get(value, other_problem) if isinstance(value, str) else other_problem)
    return None


def _resolve_auto(procs: Procs, resources: Mapping[str, JSON], report: Report) -> int | str | None:
    if has_devices(resources):
        return "Auto"
    other_devices = [name for name in resources if _OTHER_DEVICE.fullmatch(name)]
    if other_devices:
        report.add(procs.location, f"found auto with {other_devices[0]}, which muster doesn't count; write a number")
        return None
    if procs.cpu_count is not None:
        return procs.cpu_count
    report.note(
        procs.location,
        "auto without a GPU is one rank for each CPU of the machine; the imported job has procsPerNode: 1, so change "
        "it if you want more",
    )
    return 1
