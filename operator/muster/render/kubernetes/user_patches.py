"""Collect the user's settings for pods, in order of precedence."""

from muster.api.document import JSON
from muster.api.spec.job import EnvVar, Job
from muster.api.spec.node_ranges import group_nodes
from muster.render.kubernetes.merge import Fields
from muster.render.kubernetes.pod_patch import PodPatch, wrap_in_trainer


def collect_user_patches(job: Job, node: int) -> tuple[PodPatch, ...]:
    """Return the user's pod patches. Later patches override earlier patches."""
    return (*_make_spec_patches(job), *_make_template_patches(job, node))


def _make_spec_patches(job: Job) -> list[PodPatch]:
    spec = job.spec
    patches: list[PodPatch] = []
    if spec.image is not None:
        patches.append(PodPatch(wrap_in_trainer({"image": spec.image}), "spec.image", "yours"))
    resources: Fields = spec.resources.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    if resources:
        patches.append(PodPatch(wrap_in_trainer({"resources": resources}), "spec.resources", "yours"))
    if spec.env:
        variables: list[JSON] = [_make_variable(variable) for variable in spec.env]
        patches.append(PodPatch(wrap_in_trainer({"env": variables}), "spec.env", "yours"))
    return patches


def _make_variable(variable: EnvVar) -> Fields:
    if variable.value_from is not None:
        return {"name": variable.name, "valueFrom": dict(variable.value_from)}
    return {"name": variable.name, "value": variable.value}


def _make_template_patches(job: Job, node: int) -> list[PodPatch]:
    patches = [PodPatch(dict(job.spec.template), "spec.template", "yours")] if job.spec.template else []
    for index, override in enumerate(job.spec.node_overrides):
        if node in override.ranges:
            patches.append(PodPatch(dict(override.template), f"spec.nodeOverrides[{index}]", "yours"))
    return patches


def group_equal_nodes(job: Job) -> tuple[tuple[int, ...], ...]:
    """Return groups of nodes with the same overrides. The pods of a group differ only in the node."""
    return group_nodes(job.spec.max_nodes, [override.ranges for override in job.spec.node_overrides])
