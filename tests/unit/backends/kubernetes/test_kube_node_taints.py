"""Kubernetes nodes with taints that announce their end, and the pods on them."""

from dataclasses import replace

import pytest

from muster.api.document import JSON
from muster.backends.kubernetes.job_state import JobState
from muster.backends.kubernetes.kube_node_taints import KubeNodeTaints
from muster.clients.kubernetes.client import Change, ChangeType
from muster.core.facts import ProcessFacts, ProcessState
from muster.objects.kubernetes.pods import PodView, read_pod
from unit.core.builders import START
from unit.render.kubernetes.cluster_jobs import cluster_job, rendered

KARPENTER, SPOT = "karpenter.sh/disrupted", "aws-node-termination-handler/spot-itn"
RUNNING = ProcessFacts(ProcessState.RUNNING)


class Taints(KubeNodeTaints):
    """The taints of Kubernetes nodes, the changes that they reported, and a clock."""

    def __init__(self) -> None:
        self.changed: list[str] = []
        self.now = START
        super().__init__((KARPENTER, SPOT), self.changed.append, lambda: self.now)

    def report(self, *keys: str, kind: ChangeType = "MODIFIED") -> None:
        taints: list[JSON] = [{"key": key, "effect": "NoSchedule"} for key in keys]
        self.handle_change(Change(kind, {"metadata": {"name": "node-b"}, "spec": {"taints": taints}}))


def make_pod(*tolerations: JSON, kube_node: str = "node-b") -> PodView:
    job = cluster_job(template={"spec": {"tolerations": list(tolerations)}})
    source = rendered(job, 0, 0)
    metadata = source["metadata"]
    assert isinstance(metadata, dict)
    metadata["uid"] = "a-pod"
    pod = read_pod(source)
    assert pod is not None
    return replace(pod, kube_node=kube_node)


def test_a_taint_announces_the_end_of_the_pods_on_its_node() -> None:
    taints = Taints()
    taints.report("other")
    assert taints.changed == []
    assert taints.add_announcement(make_pod(), RUNNING) == RUNNING
    taints.report("other", SPOT)
    taints.now += 10
    taints.report(SPOT)
    assert taints.changed == ["node-b"]
    process = taints.add_announcement(make_pod(), RUNNING)
    assert process.disruption_announced_at == START
    assert process.problem is not None
    assert (process.problem.reason, process.problem.message) == (
        "NodeShutdown",
        f"node-b has the taint {SPOT}, which announces its end",
    )
    assert taints.add_announcement(make_pod(kube_node="node-a"), RUNNING) == RUNNING


@pytest.mark.parametrize("kind", ["MODIFIED", "DELETED"])
def test_a_taint_can_be_removed(kind: ChangeType) -> None:
    taints = Taints()
    taints.report(SPOT)
    taints.report(*([SPOT] if kind == "DELETED" else []), kind=kind)
    assert taints.changed == ["node-b", "node-b"]
    assert taints.add_announcement(make_pod(), RUNNING) == RUNNING


@pytest.mark.parametrize(
    ("toleration", "is_tolerated"),
    [
        ({"key": KARPENTER, "operator": "Exists"}, True),
        ({"operator": "Exists"}, True),
        ({"key": KARPENTER, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}, False),
        ({"key": "nvidia.com/gpu", "operator": "Exists"}, False),
    ],
)
def test_a_pod_may_tolerate_the_taint(toleration: JSON, *, is_tolerated: bool) -> None:
    taints = Taints()
    taints.report(KARPENTER)
    process = taints.add_announcement(make_pod(toleration), RUNNING)
    assert (process.disruption_announced_at is None) == is_tolerated


@pytest.mark.parametrize(
    "process",
    [
        ProcessFacts(ProcessState.EXITED),
        ProcessFacts(ProcessState.MISSING),
        replace(RUNNING, is_terminating=True),
        replace(RUNNING, disruption_announced_at=START - 1),
    ],
)
def test_a_pod_that_already_ends_needs_no_announcement(process: ProcessFacts) -> None:
    taints = Taints()
    taints.report(SPOT)
    assert taints.add_announcement(make_pod(), process) == process


def test_an_announcement_that_is_withdrawn_still_ends_the_attempt() -> None:
    taints, job_state = Taints(), JobState()
    taints.report(SPOT)
    announced = taints.add_announcement(make_pod(), RUNNING)
    assert job_state.keep_disruption("a-pod", announced) == announced
    assert job_state.keep_disruption("a-pod", RUNNING) == announced
    assert job_state.keep_disruption("another-pod", RUNNING) == RUNNING
    ended = replace(RUNNING, state=ProcessState.EXITED)
    assert job_state.keep_disruption("a-pod", ended) == ended
