"""Convert a ModelTrainer's instances, limits and network settings. Pure."""

from __future__ import annotations

from muster.api.document import JSON
from muster.importers.sagemaker.translate.machines import placement
from muster.importers.sagemaker.translate.reading import Arguments, inside, set_field

_INSTANCE_TYPE = "ml.m5.xlarge"
_VOLUME_GB = 30
_RUN_SECONDS = 3600
"""sagemaker/train/defaults.py, constants.py (SDK 3.27.0)."""


def nodes(compute: Arguments) -> tuple[JSON, dict[str, JSON]]:
    """The number of nodes, and the fields for their instance types."""
    count, instance_type = compute.whole("instance_count"), compute.text("instance_type")
    groups: list[JSON] = []
    total = 0
    for value in compute.listed("instance_groups"):
        settings = inside(compute, "instance_groups", value, "InstanceGroup")
        if settings is not None:
            size = settings.whole("instance_count") or 0
            total += size
            name, kind = settings.text("instance_group_name"), settings.text("instance_type")
            groups.append({"name": name, "instanceType": kind, "instanceCount": size})
    if groups:
        return total, {"instanceGroups": groups}
    return count or 1, {"instanceType": instance_type or _INSTANCE_TYPE}


def machines(compute: Arguments) -> dict[str, JSON]:
    """Disks, warm pool, plan and placement."""
    fields: dict[str, JSON] = {}
    volume = compute.whole("volume_size_in_gb")
    set_field(fields, "volumeSizeGb", volume if volume != _VOLUME_GB else None)
    set_field(fields, "volumeKmsKey", compute.text("volume_kms_key_id"))
    set_field(fields, "keepAliveSeconds", compute.whole("keep_alive_period_in_seconds"))
    set_field(fields, "trainingPlanArn", compute.text("training_plan_arn"))
    set_field(fields, "placement", placement(compute))
    return fields


def limits(arguments: Arguments, compute: Arguments) -> dict[str, JSON]:
    """Times, spot instances and retries."""
    fields: dict[str, JSON] = {"maxRunSeconds": _RUN_SECONDS}
    stopping = arguments.built("stopping_condition", "StoppingCondition")
    if stopping is not None:
        fields["maxRunSeconds"] = stopping.whole("max_runtime_in_seconds") or _RUN_SECONDS
        set_field(fields, "maxPendingSeconds", stopping.whole("max_pending_time_in_seconds"))
    max_wait = stopping.whole("max_wait_time_in_seconds") if stopping is not None else None
    if compute.truth("enable_managed_spot_training"):
        fields["spot"] = {"maxWaitSeconds": max_wait} if max_wait is not None else {}
    elif max_wait is not None:
        where = "StoppingCondition(max_wait_time_in_seconds=...)"
        arguments.problems.add(where, "SageMaker accepts this only with enable_managed_spot_training=True")
    retry = arguments.built("retry_strategy", "RetryStrategy")
    if retry is not None:
        fields["retry"] = {"attempts": retry.whole("maximum_retry_attempts")}
    return fields


def network(arguments: Arguments) -> dict[str, JSON]:
    """VPC, encryption and isolation."""
    networking = arguments.built("networking", "Networking")
    if networking is None:
        return {}
    fields: dict[str, JSON] = {}
    subnets, groups = networking.texts("subnets"), networking.texts("security_group_ids")
    set_field(fields, "vpc", {"subnets": subnets, "securityGroupIds": groups} if subnets or groups else None)
    encrypted = networking.truth("enable_inter_container_traffic_encryption")
    set_field(fields, "encryptInterContainerTraffic", encrypted or None)
    set_field(fields, "networkIsolation", networking.truth("enable_network_isolation") or None)
    return fields
