"""Requests that CreateTrainingJob refuses although its model allows them. Each rule names its source."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fakes.sagemaker_service.refusal import Refusal, make_validation_refusal

Fields = Mapping[str, object]

MAX_RUN_SECONDS = 28 * 24 * 3600
"""StoppingCondition.MaxRuntimeInSeconds, API Reference; the default quota of most accounts is lower."""


def check(request: Fields) -> None:
    """Raises Refusal."""
    for rule in _RULES:
        refusal = rule(request)
        if refusal is not None:
            raise refusal


def get_fields(request: Fields, key: str) -> Fields:
    value = request.get(key)
    return value if isinstance(value, Mapping) else {}


def number(fields: Fields, key: str) -> int:
    value = fields.get(key)
    return value if isinstance(value, int) else 0


def count_instances(request: Fields) -> dict[str, int]:
    """Return the requested number of instances of each type."""
    resources = get_fields(request, "ResourceConfig")
    groups = resources.get("InstanceGroups")
    wanted: dict[str, int] = {}
    for group in groups if isinstance(groups, list) else [resources]:
        kind = str(group.get("InstanceType", ""))
        wanted[kind] = wanted.get(kind, 0) + number(group, "InstanceCount")
    return wanted


def _check_image_or_algorithm(request: Fields) -> Refusal | None:
    # AlgorithmSpecification, API Reference: exactly one of the two.
    algorithm = get_fields(request, "AlgorithmSpecification")
    if ("TrainingImage" in algorithm) == ("AlgorithmName" in algorithm):
        return make_validation_refusal("Exactly one of TrainingImage and AlgorithmName must be specified.")
    return None


def _check_one_kind_of_instances(request: Fields) -> Refusal | None:
    # ResourceConfig, API Reference: InstanceGroups and InstanceType with InstanceCount exclude each other.
    resources = get_fields(request, "ResourceConfig")
    has_groups = "InstanceGroups" in resources
    if {"InstanceType" in resources, "InstanceCount" in resources} != {not has_groups}:
        return make_validation_refusal("Specify either InstanceGroups, or InstanceType and InstanceCount.")
    return None


def _check_spot_wait(request: Fields) -> Refusal | None:
    # StoppingCondition.MaxWaitTimeInSeconds, API Reference.
    stopping = get_fields(request, "StoppingCondition")
    is_spot = request.get("EnableManagedSpotTraining") is True
    if not is_spot and "MaxWaitTimeInSeconds" in stopping:
        return make_validation_refusal("MaxWaitTimeInSeconds is only supported when EnableManagedSpotTraining is true.")
    if is_spot and number(stopping, "MaxWaitTimeInSeconds") < number(stopping, "MaxRuntimeInSeconds"):
        return make_validation_refusal(
            "Invalid MaxWaitTimeInSeconds. It must be present and be greater than or equal to MaxRuntimeInSeconds"
        )
    return None


def _check_spot_keep_alive(request: Fields) -> Refusal | None:
    # Developer Guide, "Train Using SageMaker AI Managed Warm Pools", considerations.
    if request.get("EnableManagedSpotTraining") is True and get_fields(request, "ResourceConfig").get(
        "KeepAlivePeriodInSeconds"
    ):
        return make_validation_refusal("KeepAlivePeriodInSeconds is not supported with EnableManagedSpotTraining.")
    return None


def _run_time(request: Fields) -> Refusal | None:
    if number(get_fields(request, "StoppingCondition"), "MaxRuntimeInSeconds") > MAX_RUN_SECONDS:
        return make_validation_refusal(f"MaxRuntimeInSeconds must not exceed {MAX_RUN_SECONDS}")
    return None


def _check_channel_names(request: Fields) -> Refusal | None:
    channels = request.get("InputDataConfig")
    names = [str(channel.get("ChannelName")) for channel in channels] if isinstance(channels, list) else []
    if len(set(names)) < len(names):
        return make_validation_refusal("Channel names in InputDataConfig must be unique.")
    return None


_RULES: tuple[Callable[[Fields], Refusal | None], ...] = (
    _check_image_or_algorithm,
    _check_one_kind_of_instances,
    _check_spot_wait,
    _check_spot_keep_alive,
    _run_time,
    _check_channel_names,
)
