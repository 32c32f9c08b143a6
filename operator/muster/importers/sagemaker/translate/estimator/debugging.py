"""Convert an estimator's Debugger, profiler and TensorBoard settings. Pure.

The source is sagemaker 2.257.7, debugger/*.py (`_to_request_dict`, `to_*_rule_config_dict`).
"""

from __future__ import annotations

from collections.abc import Mapping

from muster.api.document import JSON, quote
from muster.api.spec.sagemaker.support import REGIONS_WITHOUT_DEBUGGER, select_debugger_conflict
from muster.importers.sagemaker.translate.arguments import Arguments, Problems, read_object, set_field
from muster.importers.sagemaker.translate.recording import SdkObject

_CONFLICTING_ARGUMENTS = {"parameterServer": "parameter_server", "checkpointPath": "checkpoint_local_path"}
"""The names of the SDK's arguments for these fields."""


def convert_debugging(arguments: Arguments) -> dict[str, JSON]:
    """Return the fields debugger, profiler and tensorBoard that the script sets."""
    debugger_rules, profiler_rules = _convert_rules(arguments)
    fields: dict[str, JSON] = {}
    set_field(fields, "debugger", _add_field(_convert_debugger(arguments), "rules", debugger_rules))
    set_field(fields, "profiler", _add_field(_convert_profiler(arguments), "rules", profiler_rules))
    tensorboard = arguments.take_object("tensorboard_output_config", "TensorBoardOutputConfig")
    if tensorboard is not None:
        set_field(fields, "tensorBoard", _convert_locations(tensorboard))
        tensorboard.report_unread()
    return fields


def remove_dropped_settings(
    estimator: str, sagemaker_fields: Mapping[str, JSON], problems: Problems
) -> dict[str, JSON]:
    """Remove the Debugger settings that the SDK removes (`_validate_and_set_debugger_configs`).

    Debugger does not support parameter servers or a custom checkpoint folder. The SDK validates the settings before it
    removes them.
    """
    debugger = sagemaker_fields.get("debugger")
    if (
        not isinstance(debugger, dict)
        or debugger.get("hook") == "Disabled"
        or sagemaker_fields.get("region") in REGIONS_WITHOUT_DEBUGGER
    ):
        return {**sagemaker_fields}
    distribution = sagemaker_fields.get("distribution")
    server = distribution.get("parameterServer") if isinstance(distribution, dict) else None
    conflict = select_debugger_conflict(
        estimator,
        has_parameter_server=isinstance(server, dict) and server.get("enabled", True) is True,
        has_checkpoint_path="checkpointPath" in sagemaker_fields,
    )
    if conflict is None:
        return {**sagemaker_fields}
    supported = ("rules",) if conflict == "checkpointPath" else ()
    remaining = {name: value for name, value in debugger.items() if name in supported}
    if remaining != debugger:
        problems.warn(
            f"{estimator}(debugger_hook_config=...)",
            f"muster ignores this with {_CONFLICTING_ARGUMENTS[conflict]}, as the SDK does",
        )
    other_fields = {name: value for name, value in sagemaker_fields.items() if name != "debugger"}
    return {**other_fields, "debugger": remaining} if remaining else other_fields


def _add_field(fields: dict[str, JSON], name: str, value: JSON) -> dict[str, JSON]:
    set_field(fields, name, value)
    return fields


def _convert_locations(settings: Arguments) -> dict[str, JSON]:
    fields: dict[str, JSON] = {}
    set_field(fields, "s3", settings.take_text("s3_output_path"))
    set_field(fields, "localPath", settings.take_text("container_local_output_path"))
    return fields


def _convert_debugger(arguments: Arguments) -> dict[str, JSON]:
    value = arguments.take_value("debugger_hook_config")
    if value is False:
        return {"hook": "Disabled"}
    if value is None or value is True:
        return {}
    settings = read_object(arguments, "debugger_hook_config", value, "DebuggerHookConfig")
    if settings is None:
        return {}
    fields = _convert_locations(settings)
    set_field(fields, "parameters", settings.take_text_map("hook_parameters"))
    set_field(fields, "collections", _convert_collections(settings, "collection_configs"))
    settings.report_unread()
    return fields


def _convert_collections(arguments: Arguments, name: str) -> list[JSON]:
    collections: list[JSON] = []
    for value in arguments.take_list(name):
        settings = read_object(arguments, name, value, "CollectionConfig")
        if settings is not None:
            collection: dict[str, JSON] = {"name": settings.take_text("name")}
            set_field(collection, "parameters", settings.take_text_map("parameters"))
            settings.report_unread()
            collections.append(collection)
    return collections


def _convert_profiler(arguments: Arguments) -> dict[str, JSON]:
    is_disabled = arguments.take_boolean("disable_profiler") or False
    settings = arguments.take_object("profiler_config", "ProfilerConfig")
    if settings is None:
        return {"mode": "Disabled"} if is_disabled else {}
    fields: dict[str, JSON] = {}
    config_disables_profiler = settings.take_boolean("disable_profiler") or False
    if is_disabled and not config_disables_profiler:
        arguments.problems.add(
            arguments.describe_argument("disable_profiler"),
            "found True, but ProfilerConfig has disable_profiler=False; the SDK rejects this",
        )
    set_field(fields, "mode", "Disabled" if config_disables_profiler else None)
    set_field(fields, "s3", settings.take_text("s3_output_path"))
    set_field(fields, "intervalMilliseconds", settings.take_integer("system_monitor_interval_millis"))
    settings.report_unread()
    return fields


def _convert_rules(arguments: Arguments) -> tuple[list[JSON], list[JSON]]:
    """Return the rules for tensors and the rules for profiles."""
    debugger_rules: list[JSON] = []
    profiler_rules: list[JSON] = []
    for value in arguments.take_list("rules"):
        settings = read_object(arguments, "rules", value, "Rule", "ProfilerRule")
        if settings is None:
            continue
        rule = _convert_rule(settings)
        (debugger_rules if isinstance(value, SdkObject) and value.class_name == "Rule" else profiler_rules).append(rule)
        settings.report_unread()
    return debugger_rules, profiler_rules


def _convert_rule(settings: Arguments) -> dict[str, JSON]:
    rule: dict[str, JSON] = {"name": settings.take_text("name")}
    set_field(rule, "image", settings.take_text("image_uri"))
    set_field(rule, "instanceType", settings.take_text("instance_type"))
    set_field(rule, "volumeSizeGb", settings.take_integer("volume_size_in_gb"))
    set_field(rule, "localPath", settings.take_text("container_local_output_path"))
    set_field(rule, "s3", settings.take_text("s3_output_path"))
    parameters = settings.take_text_map("rule_parameters")
    source = settings.take_text("source")
    if source is not None and not source.startswith("s3://"):
        settings.problems.add(
            settings.describe_argument("source"),
            f"found {quote(source)}, which the SDK uploads; upload the file and write its URI, s3://...",
        )
    set_field(parameters, "source_s3_uri", source)
    set_field(parameters, "rule_to_invoke", settings.take_text("rule_to_invoke"))
    set_field(rule, "parameters", parameters)
    return rule
