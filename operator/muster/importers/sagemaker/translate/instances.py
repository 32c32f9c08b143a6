"""Convert an estimator's instances, limits and network settings. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from muster.api.document import JSON
from muster.importers.sagemaker.translate.arguments import Arguments, describe_value, read_object, set_field
from muster.importers.sagemaker.translate.distribution import convert_plain_value
from muster.importers.sagemaker.translate.recording import Value

_DEFAULT_VOLUME_GB = 30
_DEFAULT_RUN_SECONDS = 86400
"""The SDK's defaults (estimator.py in sagemaker 2.257.7), which are also the defaults of a job."""

_LOCAL_MODE_TYPES = frozenset({"local", "local_gpu"})
"""Instance types of the SDK's local mode."""

_PLACEMENT_FIELDS = {"EnableMultipleJobs": "multipleJobs"}
_SPECIFICATIONS = "PlacementSpecifications"
_ULTRA_SERVER_FIELDS = {"UltraServerId": "ultraServerId", "InstanceCount": "instanceCount"}
"""The fields of InstancePlacementConfig in CreateTrainingJob, and their names in a job."""

_TOGGLES: dict[bool | None, str | None] = {True: "Enabled", False: "Disabled", None: None}


def convert_nodes(arguments: Arguments) -> tuple[JSON, dict[str, JSON]]:
    """Return the number of nodes, and the fields for their instance types."""
    count, instance_type = arguments.take_integer("instance_count"), arguments.take_text("instance_type")
    if instance_type in _LOCAL_MODE_TYPES:
        message = (
            "muster can't import local mode; set an instance type of SageMaker, and run the job here with `muster run`"
        )
        arguments.problems.add(arguments.describe_argument("instance_type"), f"found {instance_type}: {message}")
    groups = [group for value in arguments.take_list("instance_groups") for group in _convert_group(arguments, value)]
    if not groups:
        return count, {"instanceType": instance_type} if instance_type is not None else {}
    for name, value in (("instance_count", count), ("instance_type", instance_type)):
        if value is not None:
            arguments.problems.add(
                arguments.describe_argument(name), "the SDK rejects this together with instance_groups"
            )
    counts = [group["instanceCount"] for group in groups]
    group_list: list[JSON] = list(groups)
    return sum(instance_count for instance_count in counts if isinstance(instance_count, int)), {
        "instanceGroups": group_list
    }


def convert_instances(arguments: Arguments) -> dict[str, JSON]:
    """Convert the disks, the warm pool, the training plan, and the placement on UltraServers."""
    fields: dict[str, JSON] = {}
    set_field(fields, "volumeSizeGb", _omit_default(arguments.take_integer("volume_size"), _DEFAULT_VOLUME_GB))
    set_field(fields, "volumeKmsKey", arguments.take_text("volume_kms_key"))
    set_field(fields, "keepAliveSeconds", arguments.take_integer("keep_alive_period_in_seconds"))
    set_field(fields, "trainingPlanArn", arguments.take_text("training_plan"))
    set_field(fields, "placement", _convert_placement(arguments))
    return fields


def convert_limits(arguments: Arguments) -> dict[str, JSON]:
    """Convert the time limits and retries."""
    fields: dict[str, JSON] = {}
    set_field(fields, "maxRunSeconds", _omit_default(arguments.take_integer("max_run"), _DEFAULT_RUN_SECONDS))
    spot, max_wait = arguments.take_boolean("use_spot_instances"), arguments.take_integer("max_wait")
    if spot:
        fields["spot"] = {"maxWaitSeconds": max_wait} if max_wait else {}
    elif max_wait:
        arguments.problems.add(
            arguments.describe_argument("max_wait"), "SageMaker accepts this only with use_spot_instances=True"
        )
    attempts = arguments.take_integer("max_retry_attempts")
    set_field(fields, "retry", {"attempts": attempts} if attempts is not None else None)
    return fields


def convert_network(arguments: Arguments) -> dict[str, JSON]:
    """Convert the VPC, the encryption and the network isolation."""
    fields: dict[str, JSON] = {}
    subnets, groups = arguments.take_text_list("subnets"), arguments.take_text_list("security_group_ids")
    if bool(subnets) != bool(groups):
        arguments.problems.add(
            arguments.describe_argument("subnets"), "subnets and security_group_ids must be set together"
        )
    set_field(fields, "vpc", {"subnets": subnets, "securityGroupIds": groups} if subnets else None)
    set_field(fields, "encryptInterContainerTraffic", arguments.take_boolean("encrypt_inter_container_traffic") or None)
    set_field(fields, "networkIsolation", arguments.take_boolean("enable_network_isolation") or None)
    return fields


def convert_switches(arguments: Arguments) -> dict[str, JSON]:
    """Convert the boolean settings that the script sets."""
    names = {
        "metricsTimeSeries": "enable_sagemaker_metrics",
        "remoteDebug": "enable_remote_debug",
        "infraCheck": "enable_infra_check",
        "sessionTagChaining": "enable_session_tag_chaining",
    }
    fields: dict[str, JSON] = {}
    for field, name in names.items():
        set_field(fields, field, _TOGGLES[arguments.take_boolean(name)])
    return fields


def convert_tags(arguments: Arguments) -> dict[str, JSON]:
    """Convert the tags, which are a dictionary or a list of keys and values."""
    value = arguments.take_value("tags")
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
                            arguments.describe_argument("tags"), f"found {tag!r}; one Key and one Value are expected"
                        )
            return result
    arguments.problems.add(
        arguments.describe_argument("tags"), f"found {describe_value(value)}; a list or a dictionary is expected"
    )
    return {}


def _convert_group(arguments: Arguments, value: Value) -> list[dict[str, JSON]]:
    settings = read_object(arguments, "instance_groups", value, "InstanceGroup")
    if settings is None:
        return []
    group: dict[str, JSON] = {}
    set_field(group, "name", settings.take_text("instance_group_name"))
    set_field(group, "instanceType", settings.take_text("instance_type"))
    set_field(group, "instanceCount", settings.take_integer("instance_count"))
    return [group]


def _convert_placement(arguments: Arguments) -> JSON:
    """Convert the placement of the instances on UltraServers."""
    name = "instance_placement_config"
    values = arguments.take_dictionary(name)
    result = values.get(_SPECIFICATIONS, [])
    servers = result if isinstance(result, list) else [result]
    others = _convert_entries(
        arguments, name, {key: value for key, value in values.items() if key != _SPECIFICATIONS}, _PLACEMENT_FIELDS
    )
    fields: dict[str, JSON] = {}
    set_field(fields, "multipleJobs", others.get("multipleJobs"))
    set_field(
        fields, "ultraServers", [_convert_entries(arguments, name, server, _ULTRA_SERVER_FIELDS) for server in servers]
    )
    return fields


def _convert_entries(arguments: Arguments, name: str, value: Value, allowed: Mapping[str, str]) -> dict[str, JSON]:
    """Rename the keys of a dictionary in the request's format to the job's field names."""
    if not isinstance(value, dict) or not value.keys() <= allowed.keys():
        arguments.problems.add(
            arguments.describe_argument(name), f"found {value!r}; {' and '.join(allowed)} is expected"
        )
        return {}
    return {
        allowed[key]: convert_plain_value(value, arguments.describe_argument(name), arguments.problems)
        for key, value in value.items()
    }


def _omit_default(value: int | None, default: int) -> int | None:
    return value if value != default else None
