"""Convert an estimator's Debugger, profiler and TensorBoard settings. Pure.

The request for each setting is in sagemaker 2.257.7, debugger/*.py (`_to_request_dict`, `to_*_rule_config_dict`).
"""

from __future__ import annotations

from collections.abc import Mapping

from muster.api.document import JSON, quoted
from muster.api.spec.sagemaker.support import WITHOUT_DEBUGGER, debugger_obstacle
from muster.importers.sagemaker.translate.reading import Arguments, Problems, inside, set_field
from muster.importers.sagemaker.translate.recording import Built

_OBSTACLES = {"parameterServer": "parameter_server", "checkpointPath": "checkpoint_local_path"}
"""The SDK's names of these fields."""


def debugging(arguments: Arguments) -> dict[str, JSON]:
    """The fields debugger, profiler and tensorBoard, as far as the script sets them."""
    watching, profiling = _rules(arguments)
    fields: dict[str, JSON] = {}
    set_field(fields, "debugger", _with(_debugger(arguments), "rules", watching))
    set_field(fields, "profiler", _with(_profiler(arguments), "rules", profiling))
    board = arguments.built("tensorboard_output_config", "TensorBoardOutputConfig")
    if board is not None:
        set_field(fields, "tensorBoard", _places(board))
        board.nothing_left("")
    return fields


def without_lost_settings(kind: str, block: Mapping[str, JSON], problems: Problems) -> dict[str, JSON]:
    """Remove Debugger settings that the SDK drops (`_validate_and_set_debugger_configs`).

    Debugger does not work with parameter servers or with a checkpoint folder of the user's choice. The SDK validates
    first.
    """
    debugger = block.get("debugger")
    if not isinstance(debugger, dict) or debugger.get("hook") == "Disabled" or block.get("region") in WITHOUT_DEBUGGER:
        return {**block}
    distribution = block.get("distribution")
    server = distribution.get("parameterServer") if isinstance(distribution, dict) else None
    obstacle = debugger_obstacle(
        kind,
        has_parameter_server=isinstance(server, dict) and server.get("enabled", True) is True,
        has_checkpoint_path="checkpointPath" in block,
    )
    if obstacle is None:
        return {**block}
    stays = ("rules",) if obstacle == "checkpointPath" else ()
    kept = {name: value for name, value in debugger.items() if name in stays}
    if kept != debugger:
        problems.warn(f"{kind}(debugger_hook_config=...)", f"is ignored beside {_OBSTACLES[obstacle]}, as by the SDK")
    others = {name: value for name, value in block.items() if name != "debugger"}
    return {**others, "debugger": kept} if kept else others


def _with(fields: dict[str, JSON], name: str, value: JSON) -> dict[str, JSON]:
    set_field(fields, name, value)
    return fields


def _places(settings: Arguments) -> dict[str, JSON]:
    fields: dict[str, JSON] = {}
    set_field(fields, "s3", settings.text("s3_output_path"))
    set_field(fields, "localPath", settings.text("container_local_output_path"))
    return fields


def _debugger(arguments: Arguments) -> dict[str, JSON]:
    value = arguments.value("debugger_hook_config")
    if value is False:
        return {"hook": "Disabled"}
    if value is None or value is True:
        return {}
    settings = inside(arguments, "debugger_hook_config", value, "DebuggerHookConfig")
    if settings is None:
        return {}
    fields = _places(settings)
    set_field(fields, "parameters", settings.text_map("hook_parameters"))
    set_field(fields, "collections", _collections(settings, "collection_configs"))
    settings.nothing_left("")
    return fields


def _collections(arguments: Arguments, name: str) -> list[JSON]:
    collections: list[JSON] = []
    for value in arguments.listed(name):
        settings = inside(arguments, name, value, "CollectionConfig")
        if settings is not None:
            collection: dict[str, JSON] = {"name": settings.text("name")}
            set_field(collection, "parameters", settings.text_map("parameters"))
            settings.nothing_left("")
            collections.append(collection)
    return collections


def _profiler(arguments: Arguments) -> dict[str, JSON]:
    off = arguments.truth("disable_profiler") or False
    settings = arguments.built("profiler_config", "ProfilerConfig")
    if settings is None:
        return {"mode": "Disabled"} if off else {}
    fields: dict[str, JSON] = {}
    disabled = settings.truth("disable_profiler") or False
    if off and not disabled:
        arguments.problems.add(
            arguments.where("disable_profiler"),
            "found True beside a ProfilerConfig that doesn't say so; the SDK refuses it",
        )
    set_field(fields, "mode", "Disabled" if disabled else None)
    set_field(fields, "s3", settings.text("s3_output_path"))
    set_field(fields, "intervalMilliseconds", settings.whole("system_monitor_interval_millis"))
    settings.nothing_left("")
    return fields


def _rules(arguments: Arguments) -> tuple[list[JSON], list[JSON]]:
    """Rules that watch tensors, and rules that watch the profile."""
    watching: list[JSON] = []
    profiling: list[JSON] = []
    for value in arguments.listed("rules"):
        settings = inside(arguments, "rules", value, "Rule", "ProfilerRule")
        if settings is None:
            continue
        rule = _rule(settings)
        (watching if isinstance(value, Built) and value.kind == "Rule" else profiling).append(rule)
        settings.nothing_left("")
    return watching, profiling


def _rule(settings: Arguments) -> dict[str, JSON]:
    rule: dict[str, JSON] = {"name": settings.text("name")}
    set_field(rule, "image", settings.text("image_uri"))
    set_field(rule, "instanceType", settings.text("instance_type"))
    set_field(rule, "volumeSizeGb", settings.whole("volume_size_in_gb"))
    set_field(rule, "localPath", settings.text("container_local_output_path"))
    set_field(rule, "s3", settings.text("s3_output_path"))
    parameters = settings.text_map("rule_parameters")
    source = settings.text("source")
    if source is not None and not source.startswith("s3://"):
        settings.problems.add(
            settings.where("source"), f"found {quoted(source)}, which the SDK uploads; upload it and write s3://..."
        )
    set_field(parameters, "source_s3_uri", source)
    set_field(parameters, "rule_to_invoke", settings.text("rule_to_invoke"))
    set_field(rule, "parameters", parameters)
    return rule
