"""Explain the settings that muster adds to one node of a job, by rendering the node. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping

from muster.api.document import JSON
from muster.api.spec.job import Job
from muster.cli.explain.agent_reasons import CHECK_VALUE, find_part_reason, find_variable_reason
from muster.cli.explain.explanation import Explanation
from muster.cli.explain.launch_preview import (
    HOOK_VARIABLES,
    LaunchPreview,
    explain_warm_start,
    list_added_variables,
    list_command_parts,
    preview_launch,
)
from muster.cli.render.placeholders import PLACEHOLDERS, simulate_apply
from muster.core.instances import describe_instance
from muster.render.agent_plan import render_plan
from muster.render.kubernetes.devices import resolve_procs_per_node
from muster.render.kubernetes.machine_type import find_machine_type
from muster.render.kubernetes.pod_patch import PodPatch, merge_patches
from muster.render.kubernetes.pod_patches import PodPatches, make_pod_patches
from muster.render.kubernetes.settings import ENTRY_SEPARATOR, flatten_settings
from muster_worker.contract.schema import Plan

GROUPS = ("Pod", "Container", "Files", "Environment", "Launcher")

_TRAINER = "spec.containers[trainer]."
_OVERRIDDEN = "yours takes precedence; muster's would be "


def explain_node(job: Job, node: int) -> tuple[Explanation, ...]:
    """List every setting that muster adds to the node, in the order of `GROUPS`.

    Raises `NotRenderable` and `InvalidResource` for a job that can't run on a cluster.
    """
    applied_job = resolve_procs_per_node(simulate_apply(job))
    plan = render_plan(applied_job, PLACEHOLDERS.collector_url, "CERTIFICATE")
    patches = make_pod_patches(applied_job, node, 0, PLACEHOLDERS)
    patches_without_template = make_pod_patches(_remove_template(applied_job), node, 0, PLACEHOLDERS)
    preview = preview_launch(applied_job, plan, node)
    result = [
        *_explain_instance_type(applied_job, patches.user_patches),
        *_explain_pod(patches, patches_without_template),
        *_explain_environment(applied_job, plan, node, patches.user_patches, preview),
        *_explain_launcher(plan, preview.command),
    ]
    return tuple(sorted(result, key=lambda entry: GROUPS.index(entry.group)))


def _remove_template(job: Job) -> Job:
    # The template may set the instance type, without which EFA can't be required.
    network = job.spec.network.model_copy(update={"efa": "Auto"})
    fields = {"image": "IMAGE", "template": {}, "node_overrides": (), "network": network}
    return job.model_copy(update={"spec": job.spec.model_copy(update=fields)})


def _explain_instance_type(job: Job, user_patches: tuple[PodPatch, ...]) -> list[Explanation]:
    """Explain the node's instance type, on which the pod's requests depend."""
    machine = find_machine_type(job, merge_patches(user_patches))
    if machine is None:
        return []
    why = "muster doesn't know this type; set devices, EFA and tolerations yourself"
    if machine.facts is not None:
        why = f"it has {describe_instance(machine.facts)}"
    return [Explanation("Pod", "instance type", machine.name, machine.source, why)]


def _explain_pod(patches: PodPatches, patches_without_template: PodPatches) -> list[Explanation]:
    final = flatten_settings(merge_patches(patches.all))
    result: dict[str, Explanation] = {}  # several folders may share a volume
    for patch in (*patches.defaults, *patches.fixed_patches):
        for setting, value in flatten_settings(patch.fields).items():
            result.setdefault(setting, _explain_setting(setting, value, final, patch, patches.user_patches))
    for patch in patches_without_template.defaults:
        # muster omits these defaults, because the user's template sets them, such as a mounted folder.
        for setting, value in flatten_settings(patch.fields).items():
            if setting in final and setting not in result:
                result.setdefault(setting, _explain_setting(setting, value, final, patch, patches.user_patches))
    return list(result.values())


def _explain_setting(
    setting: str, value: JSON, final: Mapping[str, JSON], patch: PodPatch, user_patches: tuple[PodPatch, ...]
) -> Explanation:
    group, name = _split_setting(setting)
    if setting in final and final[setting] == value:
        return Explanation(group, name, _format_value(value), patch.source, patch.reason)
    shown_value = _format_value(final[setting]) if setting in final else "none"
    return Explanation(
        group, name, shown_value, _find_source(setting, user_patches), _OVERRIDDEN + _format_value(value)
    )


def _find_source(setting: str, user_patches: tuple[PodPatch, ...]) -> str:
    return [owner.source for owner in user_patches if setting in flatten_settings(owner.fields)][-1]


def _split_setting(setting: str) -> tuple[str, str]:
    path = setting.partition(ENTRY_SEPARATOR)[0]
    if path.startswith(("spec.volumes", f"{_TRAINER}volumeMounts")):
        return "Files", path.removeprefix(_TRAINER)
    return ("Container" if path.startswith(_TRAINER) else "Pod"), path.removeprefix(_TRAINER)


def _explain_environment(
    job: Job, plan: Plan, node: int, user_patches: tuple[PodPatch, ...], preview: LaunchPreview
) -> list[Explanation]:
    result: list[Explanation] = []
    user_variables = preview.user_variables
    for name, value in sorted(list_added_variables(job, plan, node).items()):
        if name not in preview.environment and name not in HOOK_VARIABLES:
            continue  # another variable of the user replaces this one
        source, why = find_variable_reason(plan.launcher, name)
        if name in user_variables:
            source, why = _find_source(f"{_TRAINER}env[{name}]", user_patches), _OVERRIDDEN + value
        result.append(Explanation("Environment", name, user_variables.get(name, value), source, why))
    return result


def _explain_launcher(plan: Plan, command: tuple[str, ...]) -> list[Explanation]:
    result: list[Explanation] = []
    first = (("network check", CHECK_VALUE),)
    is_checked = plan.network_check and plan.nodes > 1
    for part, value in (*(first if is_checked else ()), *list_command_parts(plan, command)):
        source, why = find_part_reason(plan.launcher, part)
        result.append(Explanation("Launcher", part, value, source, why))
    return [*result, Explanation("Launcher", "warm start", *explain_warm_start(plan))]


def _format_value(value: JSON) -> str:
    return value if isinstance(value, str) else json.dumps(value)
