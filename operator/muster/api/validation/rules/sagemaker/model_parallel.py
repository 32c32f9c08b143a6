"""Allowed parameters of SageMaker's model parallel library, from fw_utils.py of sagemaker 2.257.7."""

from collections.abc import Iterator, Mapping

from muster.api.document import JSON, FieldPath
from muster.api.validation.rule import Violation

_CHOICES: dict[str, tuple[str, ...]] = {
    "pipeline": ("simple", "interleaved", "_only_forward"),
    "placement_strategy": ("spread", "cluster"),
    "optimize": ("speed", "memory"),
}
_POSITIVE_INTEGERS = ("microbatches", "partitions", "active_microbatches")
_BOOLEANS = ("auto_partition", "contiguous", "load_partition", "horovod", "ddp", "deterministic_server")
_DDP_PARAMETERS = ("ddp_port", "ddp_dist_backend")


def find_parameter_violations(path: FieldPath, parameters: Mapping[str, JSON]) -> Iterator[Violation]:
    """Yield the parameters that the SageMaker SDK rejects (`validate_mp_config`)."""
    for name, value in parameters.items():
        allowed = _describe_allowed(name, value, parameters)
        if allowed is not None:
            yield Violation((*path, name), f"{value!r}; allowed is {allowed}")
    if parameters.get("auto_partition") is False and "default_partition" not in parameters:
        yield Violation((*path, "auto_partition"), "false; allowed is false only with default_partition")
    if parameters.get("horovod") and parameters.get("ddp"):
        yield Violation((*path, "horovod"), "horovod and ddp; only one is allowed")


def _describe_allowed(name: str, value: JSON, parameters: Mapping[str, JSON]) -> str | None:
    """Return the allowed values; None if `value` is allowed."""
    if name in _CHOICES:
        return None if value in _CHOICES[name] else " or ".join(_CHOICES[name])
    if name in _POSITIVE_INTEGERS:
        return None if isinstance(value, int) and value >= 1 else "a whole number from 1"
    if name in _BOOLEANS:
        return None if value in (True, False) else "true or false"
    if name in _DDP_PARAMETERS and "ddp" not in parameters:
        return "this parameter only with ddp"
    return _describe_allowed_number(name, value, parameters)


def _describe_allowed_number(name: str, value: JSON, parameters: Mapping[str, JSON]) -> str | None:
    if name == "partition_file":
        return None if isinstance(value, str) else "text"
    if name == "ddp_port":
        return None if isinstance(value, int) and value >= 0 else "a port's number"
    if name == "memory_weight":
        return None if isinstance(value, int | float) and 0 <= value <= 1 else "a number from 0 to 1"
    if name == "default_partition":
        partitions = parameters.get("partitions")
        is_below = isinstance(value, int) and isinstance(partitions, int) and value < partitions
        return None if is_below else "a number below partitions"
    return None
