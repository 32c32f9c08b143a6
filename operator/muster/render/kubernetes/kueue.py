"""Group a job's pods for Kueue, which reads labels and annotations of pods. Pure.

The names and their meanings are those of Kueue 0.17 ("Run plain pods", groups of pods).
"""

import hashlib
import json
import re
from collections.abc import Iterable

from muster.api.document import JSON
from muster.api.spec.job import Job
from muster.objects.kubernetes.kueue import ADMISSION_GATE, POD_GROUP_LABEL
from muster.objects.kubernetes.pods import FINAL_PHASES, PodView
from muster.render.kubernetes.merge import Fields
from muster.render.kubernetes.pod_patch import PodPatch, get_entries, get_pod_spec, wrap_in_spec

_SOURCE = "spec.queue.kueue"
_UID_CHARS = 8
_ROLE_CHARS = 8
_ROLE_FIELDS = (
    "nodeSelector",
    "affinity",
    "tolerations",
    "runtimeClassName",
    "priorityClassName",
    "topologySpreadConstraints",
    "resourceClaims",
)
"""What Kueue compares of pods, besides their containers' requests and ports."""


def make_kueue_patches(job: Job, queue: str, group_number: int) -> tuple[PodPatch, ...]:
    """Return the patches that add a pod to the job's group `group_number` in the LocalQueue `queue`."""
    gates: list[JSON] = [{"name": ADMISSION_GATE}]
    return (
        _make_label_patch("kueue.x-k8s.io/queue-name", queue, "the LocalQueue"),
        _make_label_patch(POD_GROUP_LABEL, build_group_name(job, group_number), "Kueue admits the job's pods together"),
        _make_annotation_patch(
            "kueue.x-k8s.io/pod-group-total-count",
            str(job.spec.nodes + job.spec.spares),
            "the pod's group, which starts together",
        ),
        _make_annotation_patch(
            "kueue.x-k8s.io/retriable-in-group",
            "false",
            "a failed job releases its quota; otherwise Kueue would wait for replacements of failed pods",
        ),
        PodPatch(
            wrap_in_spec({"schedulingGates": gates}),
            _SOURCE,
            "Kueue removes the gate when it admits the job; muster sets it, so that no pod starts while Kueue is down",
        ),
    )


def make_role_patches(job: Job, pod: Fields) -> tuple[PodPatch, ...]:
    """Return the pod's role in its group, from its fields without the Kubernetes nodes that a later pod avoids.

    Kueue evicts a group with a pod of a new role, so a pod has to have the role of the pod that it replaces.
    """
    if job.spec.queue is None or job.spec.queue.kueue is None:
        return ()
    spec = get_pod_spec(pod)
    containers = [
        [container.get("resources"), container.get("ports")]
        for name in ("initContainers", "containers")
        for container in get_entries(spec, name)
    ]
    text = json.dumps([containers, *(spec.get(name) for name in _ROLE_FIELDS)], sort_keys=True)
    role = hashlib.sha256(text.encode()).hexdigest()[:_ROLE_CHARS]
    return (_make_annotation_patch("kueue.x-k8s.io/role-hash", role, "a pod has the role of the pod that it replaces"),)


def build_group_name(job: Job, number: int) -> str:
    """Return the name of one of the job's groups of pods, which is also the name of its Workload.

    The uid distinguishes the groups of jobs with the same name.
    """
    suffix = f"-{number}" if number else ""
    return f"{job.metadata.name}-{job.metadata.uid[:_UID_CHARS]}{suffix}"


def choose_group_number(job: Job, pods: Iterable[PodView], replacements: Iterable[int]) -> int:
    """Return the number of the group that new pods of these `replacements` join. `pods` are the job's pods.

    It is the group of the pods that still run or wait. Without any, it is a new group: the old one ended with its pods,
    and Kueue never admits it again. Its number is higher than all earlier numbers, as the pods' replacement numbers
    are.
    """
    numbers = (
        _read_group_number(job, pod.kueue.group)
        for pod in pods
        if pod.phase not in FINAL_PHASES and pod.deletion_requested_at is None
    )
    return max((number for number in numbers if number is not None), default=max(replacements, default=0))


def _read_group_number(job: Job, group: str) -> int | None:
    match = re.fullmatch(rf"{re.escape(build_group_name(job, 0))}(?:-([1-9][0-9]{{0,8}}))?", group)
    return None if match is None else int(match.group(1) or 0)


def _make_label_patch(name: str, value: str, reason: str) -> PodPatch:
    return PodPatch({"metadata": {"labels": {name: value}}}, _SOURCE, reason)


def _make_annotation_patch(name: str, value: str, reason: str) -> PodPatch:
    return PodPatch({"metadata": {"annotations": {name: value}}}, _SOURCE, reason)
