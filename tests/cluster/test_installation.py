"""muster as its users install it: by the chart, for a namespace, and upgraded."""

from cluster.ended_job import succeeded
from cluster.held_job import JOB, held_job, let_go, pods, ready_pods, status, steps
from cluster.installation import Installation

COUNTING = "jsonpath={.status.progress.step}"


def test_two_replicas_are_ready_and_one_of_them_leads(installed_operator: Installation) -> None:
    pods = installed_operator.pods
    assert len(pods) == 2
    assert any(installed_operator.leader.startswith(pod) for pod in pods)
    ready = installed_operator.kubectl(
        *("get", "deployment", "muster", f"--namespace={installed_operator.system}"),
        "--output=jsonpath={.status.readyReplicas}",
    )
    assert ready == "2"


def test_what_replicas_agree_by_comes_back_when_it_is_deleted(installed_operator: Installation) -> None:
    kubectl, inside = installed_operator.kubectl, f"--namespace={installed_operator.system}"
    kinds, uids = ("lease/muster", "secret/muster-collector"), "--output=jsonpath={.items[*].metadata.uid}"
    old = kubectl("get", *kinds, inside, uids).split()
    assert len(old) == len(kinds)
    kubectl("delete", *kinds, inside)
    kubectl("rollout", "restart", "deployment/muster", inside)
    kubectl("rollout", "status", "deployment/muster", inside, "--timeout=120s")
    for kind in kinds:
        kubectl.wait("create", kind, inside)
    assert not {*old} & {*kubectl("get", *kinds, inside, uids).split()}


def test_an_upgrade_is_nothing_to_a_job_that_trains(installed_operator: Installation) -> None:
    kubectl, namespace = installed_operator.kubectl, installed_operator.namespace
    inside = f"--namespace={namespace}"
    kubectl.apply(held_job("upgraded", namespace))
    kubectl.wait(COUNTING, f"{JOB}/upgraded", inside)
    before, operators = ready_pods(kubectl, namespace, "upgraded"), set(installed_operator.pods)
    installed_operator.upgrade({"podAnnotations": {"example.com/upgraded": "yes"}})
    kubectl.wait("delete", *(f"pod/{pod}" for pod in operators), f"--namespace={installed_operator.system}")
    assert pods(kubectl, namespace, "upgraded") == before
    then = steps(kubectl, namespace, "upgraded")
    let_go(kubectl, namespace, "upgraded")
    kubectl.wait("condition=Complete", f"{JOB}/upgraded", inside)
    end = status(kubectl, namespace, "upgraded")
    assert (end["attempt"], succeeded(end)) == (1, "4/4")
    # A restarted rank would have counted from 1, and one that had waited would not have continued.
    assert end["progress"]["step"] > then > 1
    kubectl("delete", JOB, "upgraded", inside)
