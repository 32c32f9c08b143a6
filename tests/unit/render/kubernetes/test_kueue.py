"""A job's pods as groups of Kueue, and what Kueue's marks on pods mean."""

import re
from collections.abc import Mapping, Sequence

import pytest

from muster.api.document import JSON
from muster.api.json_fields import read_mapping
from muster.api.spec.job import Job
from muster.core.failure.problems import EVICTED, PREEMPTED
from muster.diagnose.kubernetes.problems import find_problem
from muster.objects.kubernetes.kueue import ADMISSION_GATE, MANAGED_LABEL, POD_GROUP_LABEL, TOPOLOGY_GATE
from muster.objects.kubernetes.pods import PodView, read_pod
from muster.render.kubernetes.gang import render_pod_group
from muster.render.kubernetes.kueue import build_group_name, choose_group_number
from muster.render.kubernetes.merge import Fields
from muster.render.kubernetes.render import render_pod
from unit.render.kubernetes.cluster_jobs import SETTING, cluster_job, pod_spec, rendered, with_trainer

KUEUE: Fields = {"kueue": "team-a"}
GROUP = "vit-7d3c1f52"
ROLE = "kueue.x-k8s.io/role-hash"


def metadata(job: Job, part: str, node: int = 0) -> Mapping[str, JSON]:
    return read_mapping(read_mapping(rendered(job, node)["metadata"]).get(part))


def pod(group: str = GROUP, *, managed: bool = True, deleted: bool = False, **status: JSON) -> PodView:
    """Return a pod of the job as the API server has it. `status` is its status, `gates` its scheduling gates."""
    body = rendered(cluster_job(queue=KUEUE))
    labels = {**read_mapping(read_mapping(body["metadata"])["labels"]), POD_GROUP_LABEL: group}
    gates: list[JSON] = [{"name": name} for name in (ADMISSION_GATE, TOPOLOGY_GATE)]
    view = read_pod(
        {
            **body,
            "metadata": {
                **read_mapping(body["metadata"]),
                "uid": "pod",
                "labels": {**labels, MANAGED_LABEL: "true"} if managed else labels,
                **({"deletionTimestamp": "2026-11-28T10:00:00Z"} if deleted else {}),
            },
            "spec": {**read_mapping(body["spec"]), "schedulingGates": gates},
            "status": dict(status),
        }
    )
    assert view is not None
    return view


def test_pods_are_a_group_that_kueue_s_webhook_takes() -> None:
    """Kueue 0.17's requirements for a pod of a group (pkg/controller/jobs/pod/pod_webhook.go, validateCommon)."""
    job = cluster_job(queue=KUEUE, nodes=4)
    labels, annotations = metadata(job, "labels"), metadata(job, "annotations")
    assert labels["kueue.x-k8s.io/queue-name"] == "team-a"
    group = str(labels[POD_GROUP_LABEL])
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", group)
    assert len(group) <= 63
    assert annotations["kueue.x-k8s.io/pod-group-total-count"] == "4"
    assert annotations["kueue.x-k8s.io/retriable-in-group"] == "false"
    assert pod_spec(job)["schedulingGates"] == [{"name": "kueue.x-k8s.io/admission"}]
    assert render_pod_group(job) is None


def test_kueue_admits_the_spares_with_the_nodes() -> None:
    job = cluster_job(queue=KUEUE, nodes=4, spares=2)
    assert metadata(job, "annotations")["kueue.x-k8s.io/pod-group-total-count"] == "6"


def test_jobs_of_one_name_are_different_groups() -> None:
    job = cluster_job(queue=KUEUE)
    later = job.model_copy(update={"metadata": job.metadata.model_copy(update={"uid": "0" * 36})})
    assert metadata(job, "labels")[POD_GROUP_LABEL] != metadata(later, "labels")[POD_GROUP_LABEL]


@pytest.mark.parametrize(
    ("pods", "replacements", "number"),
    [
        ([], [0, 0], 0),
        # One pod is replaced, and the other ones keep the group's quota.
        ([pod(), pod(phase="Failed")], [1], 0),
        ([pod(f"{GROUP}-3"), pod(deleted=True)], [4], 3),
        # All pods ended or end, so Kueue ends the group.
        ([pod(phase="Failed"), pod(deleted=True, phase="Running")], [1, 1], 1),
        ([pod(phase="Succeeded"), pod(f"{GROUP}-2", phase="Failed")], [2, 3], 3),
        # A user has changed the label.
        ([pod("vit-00000000-7")], [1, 1], 1),
        ([pod(f"{GROUP}-07")], [1, 1], 1),
    ],
)
def test_new_pods_join_the_pods_that_still_run(
    pods: Sequence[PodView], replacements: Sequence[int], number: int
) -> None:
    job = cluster_job(queue=KUEUE)
    assert choose_group_number(job, pods, replacements) == number
    body = render_pod(job, 0, 1, SETTING, group_number=number)
    label = read_mapping(read_mapping(body["metadata"])["labels"])[POD_GROUP_LABEL]
    assert label == build_group_name(job, number) == (f"{GROUP}-{number}" if number else GROUP)


def test_a_pod_has_the_role_of_the_pod_that_it_replaces() -> None:
    """Kueue evicts the group if the affinity, with which a pod avoids Kubernetes nodes, gave it a new role."""
    job = cluster_job(queue=KUEUE)
    later = render_pod(job, 1, 1, SETTING, ("node-a",))
    assert "affinity" in read_mapping(later["spec"])
    role = read_mapping(read_mapping(later["metadata"])["annotations"])[ROLE]
    assert role == metadata(job, "annotations")[ROLE]


def test_pods_with_other_requests_have_another_role() -> None:
    override: Fields = {"nodes": "1", "template": with_trainer(resources={"requests": {"cpu": "8"}})}
    job = cluster_job(queue=KUEUE, nodes=3, nodeOverrides=[override])
    roles = [metadata(job, "annotations", node)[ROLE] for node in range(3)]
    assert roles[0] == roles[2] != roles[1]


def test_pods_without_kueue_have_no_role() -> None:
    assert ROLE not in metadata(cluster_job(queue={"volcano": "team-a"}), "annotations")


GATED: Fields = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}


@pytest.mark.parametrize(
    ("managed", "message"),
    [
        (True, f"Kueue has not admitted the job yet: `kubectl describe workload {GROUP}` tells why"),
        (False, "Kueue does not manage the pods of namespace team: Kueue's configuration has to list"),
    ],
)
def test_a_pod_that_kueue_holds_says_so(*, managed: bool, message: str) -> None:
    problem = find_problem(pod(managed=managed, conditions=[GATED]))
    assert problem is not None
    assert problem.reason == "SchedulingGated"
    assert problem.message.startswith(message)


PREEMPTION = (
    "Preempted to accommodate a workload (UID: 1f, JobUID: 2e) due to prioritization in the ClusterQueue; preemptor "
    "path: /team; preemptee path: /team"
)


@pytest.mark.parametrize(
    ("kueue_reason", "why", "reason"),
    [
        ("WorkloadEvictedDueToPreempted", PREEMPTION, PREEMPTED),
        ("WorkloadEvictedDueToClusterQueueStopped", "The ClusterQueue is stopped", EVICTED),
        ("WorkloadDeleted", "Workload is deleted", EVICTED),
    ],
)
def test_a_pod_that_kueue_ended_says_why(kueue_reason: str, why: str, reason: str) -> None:
    target: Fields = {"type": "TerminationTarget", "status": "True", "reason": kueue_reason, "message": why}
    problem = find_problem(pod(deleted=True, phase="Running", conditions=[target]))
    assert problem is not None
    assert (problem.reason, problem.message) == (reason, f"Kueue ended the job's pods: {why}")
