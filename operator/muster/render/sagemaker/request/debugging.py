"""Render the request's fields for SageMaker Debugger, its profiler and TensorBoard. Pure.

The defaults are those of the SageMaker SDK (sagemaker 2.257.7, estimator.py: `_prepare_debugger_for_training`,
`_validate_and_set_debugger_configs` and `_prepare_profiler_for_training`).
"""

from collections.abc import Sequence

from muster.api.document import JSON
from muster.api.field_problems import FieldProblem, InvalidResource
from muster.api.spec.job import Spec
from muster.api.spec.sagemaker.block import find_debugger_conflict, get_sagemaker_block
from muster.api.spec.sagemaker.debug import Collection, Debugger, DebugRule, Profiler
from muster.api.spec.sagemaker.spec import SageMaker
from muster.api.spec.sagemaker.support import REGIONS_WITHOUT_DEBUGGER, is_trainium
from muster.render.sagemaker.image_catalogue import ImageFacts
from muster.render.sagemaker.images import NoSuchImage, select_rule_image
from muster.render.sagemaker.request.places import get_output_uri
from muster.render.sagemaker.request.settings import RequestSettings
from muster.render.sagemaker.request.training_request import Fields


def render_debugging(spec: Spec, settings: RequestSettings, facts: ImageFacts) -> Fields:
    """Return the request's fields for debugging. Raises `InvalidResource` if the region doesn't support them."""
    block = get_sagemaker_block(spec)
    location = get_output_uri(spec, settings)
    fields: Fields = {
        **_render_hook(spec, block, settings.region, location),
        **_render_profiler(block, settings.region, location),
    }
    if block.debugger.rules and find_debugger_conflict(spec) != "parameterServer":
        fields["DebugRuleConfigurations"] = _render_rules("debugger", block.debugger.rules, settings.region, facts)
    if block.profiler.rules:
        fields["ProfilerRuleConfigurations"] = _render_rules("profiler", block.profiler.rules, settings.region, facts)
    if block.tensor_board is not None:
        path = block.tensor_board.local_path
        local: Fields = {} if path is None else {"LocalPath": path}
        fields["TensorBoardOutputConfig"] = {"S3OutputPath": block.tensor_board.s3, **local}
    return fields


def _render_hook(spec: Spec, block: SageMaker, region: str, location: str) -> Fields:
    debugger = block.debugger
    if debugger.hook == "Disabled":
        return {}
    if region in REGIONS_WITHOUT_DEBUGGER:
        _check_region("spec.sagemaker.debugger", region, is_configured=debugger != Debugger())
        return {}
    if debugger.hook == "Auto" and find_debugger_conflict(spec) is not None:
        return {}
    fields: Fields = {
        "S3OutputPath": debugger.s3 or location,
        "CollectionConfigurations": [_render_collection(collection) for collection in debugger.collections],
    }
    if debugger.local_path is not None:
        fields["LocalPath"] = debugger.local_path
    if debugger.parameters:
        fields["HookParameters"] = dict(debugger.parameters)
    return {"DebugHookConfig": fields}


def _render_profiler(block: SageMaker, region: str, location: str) -> Fields:
    profiler = block.profiler
    if profiler.mode == "Unset":
        return {}
    is_unsupported = region in REGIONS_WITHOUT_DEBUGGER or is_trainium(block.instance_type or "")
    if profiler.mode == "Disabled" or is_unsupported:
        is_configured = profiler.mode == "Enabled" or profiler != Profiler(mode=profiler.mode)
        if is_unsupported and is_configured:
            _raise_unsupported_profiler(block, region)
        return {"ProfilerConfig": {"DisableProfiler": True}}
    fields: Fields = {"DisableProfiler": False, "S3OutputPath": profiler.s3 or location}
    if profiler.interval_milliseconds is not None:
        fields["ProfilingIntervalInMilliseconds"] = profiler.interval_milliseconds
    if profiler.parameters:
        fields["ProfilingParameters"] = dict(profiler.parameters)
    return {"ProfilerConfig": fields}


def _raise_unsupported_profiler(block: SageMaker, region: str) -> None:
    path = "spec.sagemaker.profiler"
    _check_region(path, region, is_configured=region in REGIONS_WITHOUT_DEBUGGER)
    message = (
        f"found settings for {block.instance_type}, which SageMaker can't profile; remove them, or set mode: Disabled"
    )
    raise InvalidResource((FieldProblem(path, message),))


def _check_region(path: str, region: str, *, is_configured: bool) -> None:
    if is_configured:
        raise InvalidResource((FieldProblem(path, f"found settings for {region}, which has no Debugger; remove them"),))


def _render_collection(collection: Collection) -> Fields:
    fields: Fields = {"CollectionName": collection.name}
    return {**fields, "CollectionParameters": dict(collection.parameters)} if collection.parameters else fields


def _render_rules(field: str, rules: Sequence[DebugRule], region: str, facts: ImageFacts) -> list[JSON]:
    result: list[JSON] = []
    for index, rule in enumerate(rules):
        try:
            result.append(_render_rule(rule, rule.image or select_rule_image(rule.name, region, facts)))
        except NoSuchImage as problem:
            message = f"not set, and SageMaker has none for {rule.name} in {region}: found {problem}"
            raise InvalidResource((FieldProblem(f"spec.sagemaker.{field}.rules[{index}].image", message),)) from None
    return result


def _render_rule(rule: DebugRule, image: str) -> Fields:
    optional: dict[str, JSON] = {
        "InstanceType": rule.instance_type,
        "VolumeSizeInGB": rule.volume_size_gb,
        "LocalPath": rule.local_path,
        "S3OutputPath": rule.s3,
        "RuleParameters": dict(rule.parameters) or None,
    }
    return {
        "RuleConfigurationName": rule.name,
        "RuleEvaluatorImage": image,
        **{name: value for name, value in optional.items() if value is not None},
    }
