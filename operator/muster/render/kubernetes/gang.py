"""Group a job's pods, so that its queue admits them together. Pure.

Kueue: its labels and annotations of pods (Kueue documentation, "Run plain pods", groups of pods; 0.12). Volcano:
PodGroup scheduling.volcano.sh/v1beta1 and the annotation scheduling.k8s.io/group-name (Volcano 1.12). Coscheduling:
PodGroup scheduling.x-k8s.io/v1alpha1 and the label scheduling.x-k8s.io/pod-group (scheduler-plugins 0.27).
"""

from dataclasses import dataclass

from muster.api.document import JSON
from muster.api.spec.job import Job
from muster.objects.kubernetes.kinds import COSCHEDULING_POD_GROUPS, VOLCANO_POD_GROUPS, Kind, Object
from muster.objects.kubernetes.names import build_children_name
from muster.render.kubernetes.frame import job_labels, owner_reference
from muster.render.kubernetes.merge import Fields
from muster.render.kubernetes.pod_patch import PodPatch, in_spec

KUEUE_GATE = "kueue.x-k8s.io/admission"

_UID_CHARS = 8


@dataclass(frozen=True)
class PodGroup:
    """The object that defines a group of pods for a gang scheduler."""

    kind: Kind
    body: Object


def queue_patches(job: Job) -> tuple[PodPatch, ...]:
    """Return the patches that add a pod to its group."""
    queue = job.spec.queue
    if queue is None:
        return ()
    if queue.kueue is not None:
        return _kueue(job, queue.kueue)
    if queue.volcano is not None:
        return (
            PodPatch(
                in_spec({"schedulerName": "volcano"}),
                "spec.queue.volcano",
                "Volcano schedules all pods of the job, or none",
            ),
            _annotation("scheduling.k8s.io/group-name", build_children_name(job.metadata.name), "spec.queue.volcano"),
        )
    if queue.coscheduling is not None:
        source, name = "spec.queue.coscheduling", build_children_name(job.metadata.name)
        return (
            PodPatch(
                in_spec({"schedulerName": queue.coscheduling.scheduler_name}),
                source,
                "it schedules all pods of the job, or none",
            ),
            PodPatch({"metadata": {"labels": {"scheduling.x-k8s.io/pod-group": name}}}, source, "the pod's PodGroup"),
        )
    return ()


def render_pod_group(job: Job) -> PodGroup | None:
    """Return the job's PodGroup; None if its queue needs none."""
    queue = job.spec.queue
    if queue is None:
        return None
    if queue.volcano is not None:
        spec: Fields = {"minMember": _min_members(job), "queue": queue.volcano}
        return PodGroup(VOLCANO_POD_GROUPS, _pod_group_body(job, VOLCANO_POD_GROUPS, spec))
    if queue.coscheduling is not None:
        return PodGroup(
            COSCHEDULING_POD_GROUPS, _pod_group_body(job, COSCHEDULING_POD_GROUPS, {"minMember": _min_members(job)})
        )
    return None


def _min_members(job: Job) -> int:
    """Return how many pods the scheduler places together."""
    elastic = job.spec.elastic
    return job.spec.nodes if elastic is None else elastic.min_nodes


def _kueue(job: Job, queue: str) -> tuple[PodPatch, ...]:
    source = "spec.queue.kueue"
    # The uid distinguishes the groups of jobs with the same name.
    group = f"{job.metadata.name}-{job.metadata.uid[:_UID_CHARS]}"
    gates: list[JSON] = [{"name": KUEUE_GATE}]
    return (
        _label("kueue.x-k8s.io/queue-name", queue, "the LocalQueue"),
        _label("kueue.x-k8s.io/pod-group-name", group, "Kueue admits the job's pods together"),
        _annotation("kueue.x-k8s.io/pod-group-total-count", str(job.spec.nodes + job.spec.spares), source),
        PodPatch(
            {"metadata": {"annotations": {"kueue.x-k8s.io/retriable-in-group": "false"}}},
            source,
            "a failed job releases its quota; otherwise Kueue would wait for replacements of failed pods",
        ),
        PodPatch(
            in_spec({"schedulingGates": gates}),
            source,
            "Kueue removes the gate when it admits the job; muster sets it, so that no pod starts while Kueue is down",
        ),
    )


def _label(name: str, value: str, reason: str) -> PodPatch:
    return PodPatch({"metadata": {"labels": {name: value}}}, "spec.queue.kueue", reason)


def _annotation(name: str, value: str, source: str) -> PodPatch:
    return PodPatch({"metadata": {"annotations": {name: value}}}, source, "the pod's group, which starts together")


def _pod_group_body(job: Job, kind: Kind, spec: Fields) -> Object:
    return {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "metadata": {
            "name": build_children_name(job.metadata.name),
            "namespace": job.metadata.namespace,
            "labels": job_labels(job),
            "ownerReferences": [owner_reference(job)],
        },
        "spec": spec,
    }
