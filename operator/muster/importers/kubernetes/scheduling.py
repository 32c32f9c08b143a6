"""Translate queues and gang scheduling: Kueue's label, Volcano's fields and Kubeflow's schedulingPolicy. Pure."""

from __future__ import annotations

from muster.api.json_fields import read_mapping
from muster.importers.kubernetes.draft import Draft
from muster.importers.kubernetes.fields import Fields
from muster.importers.kubernetes.metadata import Metadata
from muster.importers.kubernetes.pod_template import PodTemplate
from muster.importers.kubernetes.report import Location, Report

VOLCANO = "volcano"
DEFAULT_QUEUE = "default"

_KUEUE_QUEUE = "kueue.x-k8s.io/queue-name"
_KUEUE_PRIORITY = "kueue.x-k8s.io/priority-class"
_VOLCANO_QUEUE = "scheduling.volcano.sh/queue-name"


def write_queue(draft: Draft, metadata: Metadata, template: PodTemplate, report: Report) -> None:
    """Set spec.queue from labels, annotations and the pod's scheduler."""
    labels = metadata.labels
    origin = metadata.location.child("metadata", "labels")
    queue = labels.pop(_KUEUE_QUEUE, None)
    if queue is not None:
        draft.set("queue", {"kueue": queue}, origin.child(_KUEUE_QUEUE))
    priority = labels.pop(_KUEUE_PRIORITY, None)
    if priority is not None:
        template.labels[_KUEUE_PRIORITY] = priority
    scheduler = template.pod.get("schedulerName")
    if scheduler == VOLCANO and draft.get("queue") is None:
        name = metadata.annotations.pop(_VOLCANO_QUEUE, template.annotations.pop(_VOLCANO_QUEUE, DEFAULT_QUEUE))
        draft.set("queue", {"volcano": name}, template.pod_location.child("schedulerName"))
    if scheduler is not None and draft.get("queue") is not None:
        _write_scheduler(draft, str(scheduler), template, report)


def _write_scheduler(draft: Draft, scheduler: str, template: PodTemplate, report: Report) -> None:
    """Compare the pod's scheduler with the job's queue, which sets the scheduler of Volcano and coscheduling."""
    queue, location = read_mapping(draft.get("queue")), template.pod_location.child("schedulerName")
    if "coscheduling" in queue:
        draft.set("queue", {"coscheduling": {"schedulerName": scheduler}}, location)
        template.pod.pop("schedulerName")
    elif (scheduler == VOLCANO) != (VOLCANO in queue):
        report.add(location, f"found {scheduler} in a job with another queue; remove one of them")
    elif scheduler == VOLCANO:
        template.pod.pop("schedulerName")


def write_suspend(draft: Draft, location: Location, report: Report, *, suspend: bool | None) -> None:
    """Set spec.suspend. Kueue resumes its own jobs, and muster's pods wait for Kueue without it."""
    if suspend and "kueue" in str(draft.get("queue")):
        report.note(location, "Kueue admits muster's pods, which wait for it; so the imported job isn't suspended")
    elif suspend:
        draft.set("suspend", value=True, origin=location)


def read_scheduling_policy(parent: Fields, nodes: int, draft: Draft, template: PodTemplate | None) -> None:
    """Read runPolicy.schedulingPolicy of Kubeflow's jobs."""
    fields = parent.take_fields("schedulingPolicy")
    queue = fields.take_text("queue")
    if queue:
        draft.set("queue", {"volcano": queue}, fields.locate("queue"))
    minimum = fields.take_integer("minAvailable")
    if minimum is not None:
        check_minimum(minimum, nodes, fields.locate("minAvailable"), fields.report)
    priority = fields.take_text("priorityClass")
    if priority and template is not None:
        template.pod.setdefault("priorityClassName", priority)
    fields.ignore("minResources", "muster's PodGroup has the number of pods, and the scheduler adds their requests")
    fields.ignore("scheduleTimeoutSeconds", "the scheduler's own time limit applies to muster's PodGroup")


def check_minimum(minimum: int, nodes: int, location: Location, report: Report) -> None:
    """Check the number of pods that a gang scheduler places together, which is all pods of a job."""
    if minimum in (nodes, nodes + 1):  # an MPI job's launcher counts, too
        report.note(location, "muster's gang scheduling always places all pods together: see spec.queue")
    else:
        report.add(
            location,
            f"found {minimum} of {nodes} nodes; the ranks start only on all nodes: write {nodes}, or remove it",
        )
