"""Import an Indexed Job (batch/v1) whose pods run torchrun. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from muster.api.document import JSON
from muster.importers.kubernetes.context import Context
from muster.importers.kubernetes.draft import Draft
from muster.importers.kubernetes.fields import Fields
from muster.importers.kubernetes.job_builder import PodJob, write_job
from muster.importers.kubernetes.launch.procs import Procs
from muster.importers.kubernetes.launch.world import World
from muster.importers.kubernetes.metadata import read_metadata
from muster.importers.kubernetes.node_index import COMPLETION_INDEX
from muster.importers.kubernetes.old_hosts import report_old_hosts
from muster.importers.kubernetes.pod_template import PodTemplate, choose_container, get_resources, read_template
from muster.importers.kubernetes.report import Location
from muster.importers.kubernetes.restarts import (
    DEFAULT_BACKOFF_LIMIT,
    RestartLimit,
    note_pod_policy,
    read_pod_failure_policy,
)
from muster.importers.kubernetes.run_policy import check_manager, copy_integer

_CONTROLLERS = ("kubernetes.io/job-controller",)


@dataclass(frozen=True)
class JobTemplate:
    """The spec of a Job. `backoff_limit` is None if it is unset; `template` is None if it is invalid."""

    fields: Fields
    template: PodTemplate | None
    pods: int
    pods_location: Location
    backoff_limit: int | None
    suspend: bool | None
    rules: list[JSON]


def import_batch_job(root: Fields, _: Context) -> Draft | None:
    """Return the job of an Indexed Job."""
    draft = Draft(read_metadata(root))
    spec = root.take_fields("spec")
    job = read_job_spec(spec)
    write_times(draft, spec)
    if job.template is None:
        return None
    index = choose_container(job.template, (), root.report)
    if index is None:
        return None
    limit = DEFAULT_BACKOFF_LIMIT if job.backoff_limit is None else job.backoff_limit
    world = World(
        nodes=job.pods,
        nodes_location=job.pods_location,
        procs=Procs(1, job.template.pod_location.child("containers", index)),
        resources=get_resources(job.template.containers[index]),
    )
    pod_job = PodJob(
        template=job.template,
        containers=(),
        world=world,
        suspend=job.suspend,
        suspend_location=spec.locate("suspend"),
        limit=RestartLimit(limit, spec.locate("backoffLimit")),
        rules=job.rules,
        index=COMPLETION_INDEX,
    )
    is_complete = write_job(draft, pod_job, root.report) is not None
    report_old_hosts(draft, r"\d+\.[\w.-]+", root.report)
    return draft if is_complete else None


def write_times(draft: Draft, spec: Fields) -> None:
    """Set the deadline and the time to live."""
    for name in ("activeDeadlineSeconds", "ttlSecondsAfterFinished"):
        copy_integer(spec, name, draft)


def read_job_spec(spec: Fields) -> JobTemplate:
    """Read the spec of a Job, except its times."""
    parallelism, completions = spec.take_integer("parallelism", 1), spec.take_integer("completions", 1)
    mode = spec.take_choice("completionMode", ("Indexed", "NonIndexed"))
    pods = parallelism or completions or 1
    if parallelism is not None and completions is not None and parallelism != completions:
        spec.report.add(
            spec.locate("parallelism"),
            f"found {parallelism} beside completions {completions}; the ranks of a job run together: write one number",
        )
    if mode == "NonIndexed" and pods > 1:
        spec.report.add(spec.locate("completionMode"), "found NonIndexed; the pods have no ranks then: write Indexed")
    _read_other_fields(spec)
    template = read_template(spec)
    if template is not None:
        note_pod_policy(template, spec.report)
    return JobTemplate(
        fields=spec,
        template=template,
        pods=pods,
        pods_location=spec.locate("parallelism" if parallelism else "completions"),
        backoff_limit=spec.take_integer("backoffLimit"),
        suspend=spec.take_boolean("suspend"),
        rules=read_pod_failure_policy(spec),
    )


def _read_other_fields(spec: Fields) -> None:
    selector_reason = "left out: muster selects its pods by its own labels"
    spec.ignore("selector", selector_reason)
    spec.ignore("manualSelector", selector_reason)
    spec.ignore("podReplacementPolicy", "muster creates a pod again only if all ranks start again")
    together = "the ranks of a job succeed or fail together; remove the field"
    spec.refuse("backoffLimitPerIndex", together)
    spec.refuse("maxFailedIndexes", together)
    spec.refuse("successPolicy", together)
    check_manager(spec, _CONTROLLERS)
