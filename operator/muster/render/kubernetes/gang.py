"""Group a job's pods, so that its queue admits them together. Pure.

Kueue reads labels and annotations of pods (kueue.py). Volcano 1.12 uses a PodGroup scheduling.volcano.sh/v1beta1 and
the annotation scheduling.k8s.io/group-name. Coscheduling (scheduler-plugins 0.33) uses a PodGroup
scheduling.x-k8s.io/v1alpha1 and the label scheduling.x-k8s.io/pod-group.
"""

from dataclasses import dataclass

from muster.api.spec.job import Job
from muster.objects.kubernetes.kinds import COSCHEDULING_POD_GROUPS, VOLCANO_POD_GROUPS, Kind, Object
from muster.objects.kubernetes.names import build_children_name
from muster.render.kubernetes.base_patches import make_job_labels, make_owner_reference
from muster.render.kubernetes.kueue import make_kueue_patches
from muster.render.kubernetes.merge import Fields
from muster.render.kubernetes.pod_patch import PodPatch, wrap_in_spec


@dataclass(frozen=True)
class PodGroup:
    """The object that defines a group of pods for a gang scheduler."""

    kind: Kind
    body: Object


def make_queue_patches(job: Job, group_number: int) -> tuple[PodPatch, ...]:
    """Return the patches that add a pod to its group. `group_number` is the group's in Kueue."""
    queue = job.spec.queue
    if queue is None:
        return ()
    if queue.kueue is not None:
        return make_kueue_patches(job, queue.kueue, group_number)
    if queue.volcano is not None:
        return (
            PodPatch(
                wrap_in_spec({"schedulerName": "volcano"}),
                "spec.queue.volcano",
                "Volcano schedules all pods of the job, or none",
            ),
            _make_annotation_patch(
                "scheduling.k8s.io/group-name", build_children_name(job.metadata.name), "spec.queue.volcano"
            ),
        )
    if queue.coscheduling is not None:
        source, name = "spec.queue.coscheduling", build_children_name(job.metadata.name)
        return (
            PodPatch(
                wrap_in_spec({"schedulerName": queue.coscheduling.scheduler_name}),
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
        spec: Fields = {"minMember": _get_min_member(job), "queue": queue.volcano}
        return PodGroup(VOLCANO_POD_GROUPS, _make_pod_group_body(job, VOLCANO_POD_GROUPS, spec))
    if queue.coscheduling is not None:
        return PodGroup(
            COSCHEDULING_POD_GROUPS,
            _make_pod_group_body(job, COSCHEDULING_POD_GROUPS, {"minMember": _get_min_member(job)}),
        )
    return None


def _get_min_member(job: Job) -> int:
    """Return the minimum number of pods that the scheduler places together."""
    elastic = job.spec.elastic
    return job.spec.nodes if elastic is None else elastic.min_nodes


def _make_annotation_patch(name: str, value: str, source: str) -> PodPatch:
    return PodPatch({"metadata": {"annotations": {name: value}}}, source, "the pod's group, which starts together")


def _make_pod_group_body(job: Job, kind: Kind, spec: Fields) -> Object:
    return {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "metadata": {
            "name": build_children_name(job.metadata.name),
            "namespace": job.metadata.namespace,
            "labels": make_job_labels(job),
            "ownerReferences": [make_owner_reference(job)],
        },
        "spec": spec,
    }
