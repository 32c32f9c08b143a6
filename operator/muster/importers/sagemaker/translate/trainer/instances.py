"""Convert a ModelTrainer's instances, limits and network settings. Pure."""

from __future__ import annotations

from muster.api.document import JSON
from muster.importers.sagemaker.translate.arguments import Arguments, read_object, set_field
from muster.importers.sagemaker.translate.recording import SdkObject, Value

_INSTANCE_TYPE = "ml.m5.xlarge"
_VOLUME_GB = 30
_RUN_SECONDS = 3600
"""The SDK's defaults (sagemaker/train/defaults.py and constants.py in SDK 3.27.0)."""

_SERVICE_RUN_SECONDS = 86400
"""SageMaker's default of MaxRuntimeInSeconds (StoppingCondition in CreateTrainingJob)."""


def convert_nodes(compute: Arguments) -> tuple[JSON, dict[str, JSON]]:
    """Return the number of nodes, and the fields for their instance types."""
    count, instance_type = compute.take_integer("instance_count"), compute.take_text("instance_type")
    groups: list[JSON] = []
    total = 0
    for value in compute.take_list("instance_groups"):
        settings = read_object(compute, "instance_groups", value, "InstanceGroup")
        if settings is not None:
            size = settings.take_integer("instance_count") or 0
            total += size
            name, group_type = settings.take_text("instance_group_name"), settings.take_text("instance_type")
            groups.append({"name": name, "instanceType": group_type, "instanceCount": size})
    if groups:
        return total, {"instanceGroups": groups}
    return count or 1, {"instanceType": instance_type or _INSTANCE_TYPE}


def convert_instances(compute: Arguments) -> dict[str, JSON]:
    """Convert the disks, the warm pool, the training plan and the placement."""
    fields: dict[str, JSON] = {}
    volume = compute.take_integer("volume_size_in_gb")
    set_field(fields, "volumeSizeGb", volume if volume != _VOLUME_GB else None)
    set_field(fields, "volumeKmsKey", compute.take_text("volume_kms_key_id"))
    set_field(fields, "keepAliveSeconds", compute.take_integer("keep_alive_period_in_seconds"))
    set_field(fields, "trainingPlanArn", compute.take_text("training_plan_arn"))
    set_field(fields, "placement", _convert_placement(compute))
    return fields


def _convert_placement(compute: Arguments) -> JSON:
    config = compute.take_object("instance_placement_config", "InstancePlacementConfig")
    if config is None:
        return None
    servers: list[JSON] = []
    for value in config.take_list("placement_specifications"):
        server = read_object(config, "placement_specifications", value, "PlacementSpecification")
        if server is not None:
            names = {"ultraServerId": server.take_text("ultra_server_id")}
            servers.append({**names, "instanceCount": server.take_integer("instance_count")})
    fields: dict[str, JSON] = {}
    set_field(fields, "multipleJobs", config.take_boolean("enable_multiple_jobs"))
    set_field(fields, "ultraServers", servers)
    return fields


def convert_limits(arguments: Arguments, compute: Arguments) -> dict[str, JSON]:
    """Convert the time limits, spot instances and retries."""
    fields: dict[str, JSON] = {"maxRunSeconds": _RUN_SECONDS}
    value = arguments.take_value("stopping_condition")
    stopping_condition = (
        read_object(arguments, "stopping_condition", value, "StoppingCondition") if value is not None else None
    )
    if stopping_condition is not None:
        seconds = stopping_condition.take_integer("max_runtime_in_seconds")
        fields["maxRunSeconds"] = seconds or _choose_run_seconds(value)
        set_field(fields, "maxPendingSeconds", stopping_condition.take_integer("max_pending_time_in_seconds"))
    max_wait = stopping_condition.take_integer("max_wait_time_in_seconds") if stopping_condition is not None else None
    if compute.take_boolean("enable_managed_spot_training"):
        fields["spot"] = {"maxWaitSeconds": max_wait} if max_wait is not None else {}
    elif max_wait is not None:
        location = "StoppingCondition(max_wait_time_in_seconds=...)"
        arguments.problems.add(location, "SageMaker accepts this only with enable_managed_spot_training=True")
    retry = arguments.take_object("retry_strategy", "RetryStrategy")
    if retry is not None:
        fields["retry"] = {"attempts": retry.take_integer("maximum_retry_attempts")}
    return fields


def _choose_run_seconds(stopping_condition: Value) -> int:
    """Return the limit for a condition without one. The SDK has a default for None, and the service if it is unset."""
    is_none = isinstance(stopping_condition, SdkObject) and "max_runtime_in_seconds" in stopping_condition.fields
    return _RUN_SECONDS if is_none else _SERVICE_RUN_SECONDS


def convert_network(arguments: Arguments) -> dict[str, JSON]:
    """Convert the VPC, the encryption and the network isolation."""
    networking = arguments.take_object("networking", "Networking")
    if networking is None:
        return {}
    fields: dict[str, JSON] = {}
    subnets, groups = networking.take_text_list("subnets"), networking.take_text_list("security_group_ids")
    set_field(fields, "vpc", {"subnets": subnets, "securityGroupIds": groups} if subnets or groups else None)
    is_encrypted = networking.take_boolean("enable_inter_container_traffic_encryption")
    set_field(fields, "encryptInterContainerTraffic", is_encrypted or None)
    set_field(fields, "networkIsolation", networking.take_boolean("enable_network_isolation") or None)
    return fields
