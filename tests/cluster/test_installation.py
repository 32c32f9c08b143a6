"""muster as its users install it: by the chart, for a namespace or the whole cluster, upgraded, and gone again."""

import json

import pytest

from cluster.held_job import held_job, let_go, pods
from cluster.helm import Helm
from cluster.installation import RELEASE, SELECTOR, Installation, installed
from cluster.shared import Cluster, Kubectl

CRD = "crd/distributedtrainingjobs.muster.dev"
JOB = "distributedtrainingjob"
RUNNING = "jsonpath={.status.phase}=Running"


def everything(kubectl: Kubectl) -> set[str]:
    """All that bears the release's labels, in all namespaces, of every kind that can be listed."""
    kinds = kubectl("api-resources", "--verbs=list", "--output=name").split()
    listed = kubectl(
        *("get", ",".join(kinds), "--all-namespaces", f"--selector={SELECTOR}", "--ignore-not-found"),
        "--output=jsonpath={range .items[*]}{.kind}/{.metadata.name}{'\\n'}{end}",
    )
    return set(listed.split())


def test_two_replicas_are_ready_and_one_of_them_leads(installed_operator: Installation) -> None:
    pods = installed_operator.pods
    assert len(pods) == 2
    assert any(installed_operator.leader.startswith(pod) for pod in pods)
    ready = installed_operator.kubectl(
        *("get", "deployment", "muster", f"--namespace={installed_operator.system}"),
        "--output=jsonpath={.status.readyReplicas}",
    )
    assert ready == "2"


@pytest.mark.parametrize("kind", ["lease/muster", "secret/muster-collector"])
def test_what_replicas_agree_by_comes_back_when_it_is_deleted(installed_operator: Installation, kind: str) -> None:
    kubectl, inside = installed_operator.kubectl, f"--namespace={installed_operator.system}"
    old = kubectl("get", kind, inside, "--output=jsonpath={.metadata.uid}")
    kubectl("delete", kind, inside)
    kubectl("rollout", "restart", "deployment/muster", inside)
    kubectl("rollout", "status", "deployment/muster", inside, "--timeout=120s")
    kubectl.wait("create", kind, inside)
    assert kubectl("get", kind, inside, "--output=jsonpath={.metadata.uid}") != old


def test_an_upgrade_is_nothing_to_a_job_that_trains(installed_operator: Installation) -> None:
    kubectl, inside = installed_operator.kubectl, f"--namespace={installed_operator.namespace}"
    kubectl.apply(held_job("held", installed_operator.namespace))
    kubectl.wait(RUNNING, f"{JOB}/held", inside)
    before, operators = pods(kubectl, installed_operator.namespace), set(installed_operator.pods)
    installed_operator.upgrade({"podAnnotations": {"example.com/upgraded": "yes"}})
    kubectl.wait("delete", *(f"pod/{pod}" for pod in operators), f"--namespace={installed_operator.system}")
    assert pods(kubectl, installed_operator.namespace) == before
    let_go(kubectl, installed_operator.namespace)
    kubectl.wait("condition=Complete", f"{JOB}/held", inside)
    job = json.loads(kubectl("get", JOB, "held", inside, "--output=json"))
    assert job["status"]["incarnation"] == 1
    kubectl("delete", JOB, "held", inside)


def test_an_uninstalled_muster_leaves_jobs_and_the_crd_and_nothing_else(
    cluster: Cluster, kubectl: Kubectl, helm: Helm, namespace: str
) -> None:
    before = everything(kubectl)
    values = {"namespaces": [namespace], "networkPolicy": {"enabled": True}}
    with installed(cluster, kubectl, helm, values) as installation:
        assert everything(kubectl) - before
        kubectl.apply(held_job("held", namespace))
        kubectl.wait(RUNNING, f"{JOB}/held", f"--namespace={namespace}")
        training = pods(kubectl, namespace)
        assert len(training) == 2
        helm.uninstall(RELEASE, installation.system)
        kubectl.wait("delete", "pods", f"--selector={SELECTOR}", f"--namespace={installation.system}")
        assert everything(kubectl) == before
        left = json.loads(kubectl("get", "secrets,leases", f"--namespace={installation.system}", "--output=json"))
        assert left["items"] == []
    assert pods(kubectl, namespace) == training
    assert kubectl("get", CRD, "--output=name")


def test_one_that_is_for_the_whole_cluster_runs_jobs_of_any_namespace(
    cluster: Cluster, kubectl: Kubectl, helm: Helm, namespace: str
) -> None:
    with installed(cluster, kubectl, helm, {}):
        kubectl.apply(held_job("held", namespace))
        kubectl.wait(RUNNING, f"{JOB}/held", f"--namespace={namespace}")
        let_go(kubectl, namespace)
        kubectl.wait("condition=Complete", f"{JOB}/held", f"--namespace={namespace}")
