"""The leader ends or is upgraded while a job trains. It or another replica leads again, and ranks and status
continue.
"""

import time
from collections.abc import Callable, Iterator

import pytest

from cluster.ended_job import succeeded
from cluster.held_job import JOB, held_job, let_go, pods, ready_pods, status, steps
from cluster.helm import Helm
from cluster.installation import Installation, Installer
from cluster.installed.awaited import until
from cluster.say import say
from cluster.shared import Cluster, Kubectl

START_SECONDS = 150.0
KILLED_SECONDS = 60.0
STOPPED_SECONDS = 12.0
"""Less than the 15 s after which a Lease expires that its holder has not released."""


@pytest.fixture(scope="module")
def training(cluster: Cluster, installer: Installer) -> Iterator[Installation]:
    """Yield the installation with a job `held` of 2 x 2 ranks, which succeeds at the end."""
    cluster.up()
    kubectl = Kubectl(cluster.kubeconfig)
    release = installer.provide(kubectl, Helm(cluster.kubeconfig))
    namespace = release.namespace
    kubectl.apply(held_job("held", namespace))
    until(lambda: steps(kubectl, namespace, "held"), START_SECONDS)
    before = ready_pods(kubectl, namespace, "held")
    yield release
    now = steps(kubectl, namespace, "held")
    until(lambda: steps(kubectl, namespace, "held") > now, KILLED_SECONDS)
    assert pods(kubectl, namespace, "held") == before
    let_go(kubectl, namespace)
    kubectl.wait("condition=Complete", f"{JOB}/held", f"--namespace={namespace}")
    end = status(kubectl, namespace, "held")
    assert (end["attempt"], succeeded(end)) == (1, "4/4")
    assert end["progress"]["step"] > now
    kubectl("delete", JOB, "held", f"--namespace={namespace}")


@pytest.fixture(autouse=True)
def _both_replicas(training: Installation) -> None:
    """Wait until both replicas are ready."""
    inside = f"--namespace={training.system}"
    training.kubectl("rollout", "status", "deployment/muster", inside, "--timeout=60s")


def test_a_leader_whose_pod_is_deleted_by_force_is_followed(training: Installation) -> None:
    inside = f"--namespace={training.system}"
    follow(
        training,
        lambda leader: training.kubectl("delete", "pod", leader, inside, "--grace-period=0", "--force", "--wait=false"),
        "deleted by force",
    )


def test_a_leader_that_is_stopped_hands_over_at_once(training: Installation) -> None:
    leader, inside = training.leader, f"--namespace={training.system}"
    training.kubectl("delete", "pod", pod_of(leader), inside, "--wait=false")
    seconds = until(lambda: training.leader not in {"", leader}, STOPPED_SECONDS)
    say(f"stopped: the next one leads after {seconds:.1f} s")


def test_an_upgrade_replaces_both_replicas(training: Installation) -> None:
    operators = set(training.pods)
    training.upgrade({"podAnnotations": {"example.com/upgraded": "yes"}})
    training.kubectl.wait("delete", *(f"pod/{pod}" for pod in operators), f"--namespace={training.system}")


def follow(training: Installation, end: Callable[[str], object], how: str) -> float:
    """End the leader, and check that the next one continues its work. Return the seconds until the next one leads."""
    kubectl, namespace, term = training.kubectl, training.namespace, training.leader_term
    end(pod_of(training.leader))
    began = time.monotonic()
    until(lambda: training.leader_term > term, KILLED_SECONDS)
    led = time.monotonic() - began
    now = steps(kubectl, namespace, "held")
    until(lambda: steps(kubectl, namespace, "held") > now, KILLED_SECONDS - led)
    say(f"{how}: the next one leads after {led:.1f} s, the status goes on after {time.monotonic() - began:.1f} s")
    return led


def pod_of(identity: str) -> str:
    """Return the pod of a replica, by the replica's own name."""
    return identity.partition("_")[0]
