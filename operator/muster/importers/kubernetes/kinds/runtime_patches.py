"""Overrides of a runtime's pods in a TrainJob, in the forms of several versions of Trainer. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from muster.api.document import JSON
from muster.importers.kubernetes.fields import Fields
from muster.importers.kubernetes.kinds.job_set import ReplicatedJob
from muster.importers.kubernetes.pod_template import PodTemplate, check_pod_fields
from muster.importers.kubernetes.report import Location, Report
from muster.render.kubernetes.merge import merge

_POD_FIELDS = (
    *("serviceAccountName", "nodeSelector", "affinity", "tolerations", "volumes", "initContainers", "containers"),
    *("schedulingGates", "imagePullSecrets", "securityContext"),
)
"""The pod fields that a TrainJob may override."""


@dataclass(frozen=True)
class Override:
    """A patch of the pods of some of the runtime's jobs. `targets` has their names; it is empty for all jobs."""

    targets: Collection[str]
    labels: dict[str, JSON]
    annotations: dict[str, JSON]
    pod: dict[str, JSON]
    location: Location


def read_overrides(spec: Fields) -> list[Override]:
    """Read podSpecOverrides, podTemplateOverrides and runtimePatches."""
    return [
        *(_read_pod_override(fields) for fields in spec.take_entries("podSpecOverrides")),
        *(_read_template_override(fields) for fields in spec.take_entries("podTemplateOverrides")),
        *(override for fields in spec.take_entries("runtimePatches") for override in _read_patch(fields)),
    ]


def apply_overrides(jobs: Mapping[str, ReplicatedJob], override: Override, report: Report) -> dict[str, ReplicatedJob]:
    """Return the jobs with the override merged into their pods."""
    for name in override.targets:
        if name not in jobs:
            report.add(override.location, f"found the target {name}; the runtime's jobs are {', '.join(jobs)}")
    return {
        name: job if override.targets and name not in override.targets else _apply(job, override, report)
        for name, job in jobs.items()
    }


def _apply(job: ReplicatedJob, override: Override, report: Report) -> ReplicatedJob:
    template = job.job.template
    if template is None:
        return job
    labels, annotations = {**template.labels, **override.labels}, {**template.annotations, **override.annotations}
    pod = merge(template.pod, override.pod)
    changed_template = replace(template, labels=labels, annotations=annotations, pod=pod)
    _check_containers(template, override, report)
    return replace(job, job=replace(job.job, template=changed_template))


def _check_containers(template: PodTemplate, override: Override, report: Report) -> None:
    containers = override.pod.get("containers")
    for container in containers if isinstance(containers, list) else []:
        name = container.get("name") if isinstance(container, dict) else None
        if not isinstance(name, str) or template.find_container(name) is None:
            report.add(override.location.child("containers"), f"found {name}; the runtime has no such container")


def _read_pod_override(fields: Fields) -> Override:
    targets = _read_targets(fields)
    pod = _take_pod(fields)
    return Override(targets, {}, {}, check_pod_fields(pod, fields.location, fields.report) or {}, fields.location)


def _read_template_override(fields: Fields) -> Override:
    targets = _read_targets(fields)
    labels, annotations = _read_metadata(fields)
    spec = fields.take_fields("spec")
    pod = _take_pod(spec)
    return Override(
        targets, labels, annotations, check_pod_fields(pod, spec.location, fields.report) or {}, spec.location
    )


def _read_patch(fields: Fields) -> list[Override]:
    fields.ignore("manager", "muster applies all patches once")
    fields.take("time")
    template = fields.take_fields("trainingRuntimeSpec").take_fields("template")
    _ignore_metadata(template, "JobSet")
    return [_read_job_patch(job) for job in template.take_fields("spec").take_entries("replicatedJobs")]


def _read_job_patch(fields: Fields) -> Override:
    name = fields.take_text("name")
    job = fields.take_fields("template")
    _ignore_metadata(job, "Job")
    template = job.take_fields("spec").take_fields("template")
    labels, annotations = _read_metadata(template)
    spec = template.take_fields("spec")
    pod = _take_pod(spec)
    targets = (name,) if name is not None else ()
    return Override(
        targets, labels, annotations, check_pod_fields(pod, spec.location, fields.report) or {}, spec.location
    )


def _read_targets(fields: Fields) -> Collection[str]:
    names = [target.take_text("name") for target in fields.take_entries("targetJobs")]
    return [name for name in names if name is not None]


def _read_metadata(fields: Fields) -> tuple[dict[str, JSON], dict[str, JSON]]:
    metadata = fields.take_fields("metadata")
    return metadata.take_text_map("labels"), metadata.take_text_map("annotations")


def _ignore_metadata(fields: Fields, kind: str) -> None:
    metadata = fields.take_fields("metadata")
    for name in ("labels", "annotations"):
        metadata.ignore(name, f"muster creates no {kind} that could have them")


def _take_pod(fields: Fields) -> dict[str, JSON]:
    values = {name: fields.take(name) for name in _POD_FIELDS}
    return {name: value for name, value in values.items() if value is not None}
