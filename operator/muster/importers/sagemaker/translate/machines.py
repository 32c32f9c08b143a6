"""Convert an estimator's instances, limits and network settings. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from muster.api.document import JSON
from muster.importers.sagemaker.translate.distribution import plain
from muster.importers.sagemaker.translate.reading import Arguments, inside, set_field, shown
from muster.importers.sagemaker.translate.recording import Value

_DEFAULT_VOLUME_GB = 30
_DEFAULT_RUN_SECONDS = 86400
"""sagemaker 2.257.7, estimator.py; a job has the same defaults."""

_LOCAL = frozenset({"local", "local_gpu"})
"""Instance types of the SDK's local mode."""

_PLACEMENT = {"EnableMultipleJobs": "multipleJobs"}
_SPECIFICATIONS = "PlacementSpecifications"
_ULTRA_SERVER = {"UltraServerId": "ultraServerId", "InstanceCount": "instanceCount"}
"""InstancePlacementConfig of CreateTrainingJob, and the names of its fields in a job."""

_ON_OFF: dict[bool | None, str | None] = {True: "Enabled", False: "Disabled", None: None}


def nodes(arguments: Arguments) -> tuple[JSON, dict[str, JSON]]:
    """The number of nodes, and the fields for their instance types."""
    count, instance_type = arguments.whole("instance_count"), arguments.text("instance_type")
    if instance_type in _LOCAL:
        words = "local mode can't be imported: name an instance type for SageMaker; `muster run` runs a job here"
        arguments.problems.add(arguments.where("instance_type"), f"found {instance_type}: {words}")
    groups = [group for value in arguments.listed("instance_groups") for group in _group(arguments, value)]
    if not groups:
        return count, {"instanceType": instance_type} if instance_type is not None else {}
    for name, value in (("instance_count", count), ("instance_type", instance_type)):
        if value is not None:
            arguments.problems.add(arguments.where(name), "the instance groups set this; the SDK rejects both together")
    counts = [group["instanceCount"] for group in groups]
    listed: list[JSON] = list(groups)
    return sum(found for found in counts if isinstance(found, int)), {"instanceGroups": listed}


def machines(arguments: Arguments) -> dict[str, JSON]:
    """Disks, warm pool, training plan, and placement on UltraServers."""
    fields: dict[str, JSON] = {}
    set_field(fields, "volumeSizeGb", _unless(arguments.whole("volume_size"), _DEFAULT_VOLUME_GB))
    set_field(fields, "volumeKmsKey", arguments.text("volume_kms_key"))
    set_field(fields, "keepAliveSeconds", arguments.whole("keep_alive_period_in_seconds"))
    set_field(fields, "trainingPlanArn", arguments.text("training_plan"))
    set_field(fields, "placement", placement(arguments))
    return fields


def limits(arguments: Arguments) -> dict[str, JSON]:
    """Times and retries."""
    fields: dict[str, JSON] = {}
    set_field(fields, "maxRunSeconds", _unless(arguments.whole("max_run"), _DEFAULT_RUN_SECONDS))
    spot, max_wait = arguments.truth("use_spot_instances"), arguments.whole("max_wait")
    if spot:
        fields["spot"] = {"maxWaitSeconds": max_wait} if max_wait else {}
    elif max_wait:
        arguments.problems.add(arguments.where("max_wait"), "SageMaker accepts this only with use_spot_instances=True")
    attempts = arguments.whole("max_retry_attempts")
    set_field(fields, "retry", {"attempts": attempts} if attempts is not None else None)
    return fields


def network(arguments: Arguments) -> dict[str, JSON]:
    """VPC, encryption and isolation."""
    fields: dict[str, JSON] = {}
    subnets, groups = arguments.texts("subnets"), arguments.texts("security_group_ids")
    if bool(subnets) != bool(groups):
        arguments.problems.add(arguments.where("subnets"), "subnets and security_group_ids go together")
    set_field(fields, "vpc", {"subnets": subnets, "securityGroupIds": groups} if subnets else None)
    set_field(fields, "encryptInterContainerTraffic", arguments.truth("encrypt_inter_container_traffic") or None)
    set_field(fields, "networkIsolation", arguments.truth("enable_network_isolation") or None)
    return fields


def switches(arguments: Arguments) -> dict[str, JSON]:
    """Switches of the request, which is silent about those that the script does not set."""
    names = {
        "metricsTimeSeries": "enable_sagemaker_metrics",
        "remoteDebug": "enable_remote_debug",
        "infraCheck": "enable_infra_check",
        "sessionTagChaining": "enable_session_tag_chaining",
    }
    fields: dict[str, JSON] = {}
    for field, name in names.items():
        set_field(fields, field, _ON_OFF[arguments.truth(name)])
    return fields


def tags(arguments: Arguments) -> dict[str, JSON]:
    """Tags, from a dictionary or from a list of keys and values."""
    value = arguments.value("tags")
    result: dict[str, JSON] = {}
    match value:
        case None:
            return {}
        case dict():
            return {name: str(text) for name, text in value.items()}
        case list():
            for tag in value:
                match tag:
                    case {"Key": str(key), "Value": str(text)} if key not in result:
                        result[key] = text
                    case _:
                        arguments.problems.add(
                            arguments.where("tags"), f"found {tag!r}; one Key and one Value is expected"
                        )
            return result
    arguments.problems.add(arguments.where("tags"), f"found {shown(value)}; a list or a dictionary is expected")
    return {}


def _group(arguments: Arguments, value: Value) -> list[dict[str, JSON]]:
    settings = inside(arguments, "instance_groups", value, "InstanceGroup")
    if settings is None:
        return []
    group: dict[str, JSON] = {}
    set_field(group, "name", settings.text("instance_group_name"))
    set_field(group, "instanceType", settings.text("instance_type"))
    set_field(group, "instanceCount", settings.whole("instance_count"))
    return [group]


def placement(arguments: Arguments) -> JSON:
    """How the instances are placed on UltraServers."""
    name = "instance_placement_config"
    values = arguments.dictionary(name)
    result = values.get(_SPECIFICATIONS, [])
    servers = result if isinstance(result, list) else [result]
    others = _entries(
        arguments, name, {key: value for key, value in values.items() if key != _SPECIFICATIONS}, _PLACEMENT
    )
    fields: dict[str, JSON] = {}
    set_field(fields, "multipleJobs", others.get("multipleJobs"))
    set_field(fields, "ultraServers", [_entries(arguments, name, server, _ULTRA_SERVER) for server in servers])
    return fields


def _entries(arguments: Arguments, name: str, value: Value, allowed: Mapping[str, str]) -> dict[str, JSON]:
    """Convert a part of the request that the script writes itself to the job's field names."""
    if not isinstance(value, dict) or not value.keys() <= allowed.keys():
        arguments.problems.add(arguments.where(name), f"found {value!r}; {' and '.join(allowed)} is expected")
        return {}
    return {allowed[key]: plain(value, arguments.where(name), arguments.problems) for key, value in value.items()}


def _unless(value: int | None, default: int) -> int | None:
    return value if value != default else None
