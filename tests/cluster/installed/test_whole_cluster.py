"""An operator of the whole cluster, on a quiet machine: it would run the jobs of other tests, too."""

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from cluster.ended_job import succeeded
from cluster.held_job import JOB, held_job, let_go, pods, ready_pods, status, steps
from cluster.helm import Helm
from cluster.installation import Installation, installed
from cluster.installed.awaited import until
from cluster.installed.test_leader import START_SECONDS, STOPPED_SECONDS, follow
from cluster.reasons import machine
from cluster.shared import Cluster, Kubectl, SharedCluster

pytestmark = pytest.mark.alone

RUNNING = "jsonpath={.status.phase}=Running"


@pytest.fixture(scope="module")
def everywhere(cluster: Cluster) -> Iterator[Installation]:
    """Yield a ready release for all namespaces."""
    cluster.up()
    with installed(cluster, Kubectl(cluster.kubeconfig), Helm(cluster.kubeconfig), {}) as release:
        yield release


def test_it_runs_jobs_of_any_namespace(everywhere: Installation, namespace: str) -> None:
    kubectl, inside = everywhere.kubectl, f"--namespace={namespace}"
    kubectl.apply(held_job("held", namespace, nodes=1, procs_per_node=1))
    kubectl.wait(RUNNING, f"{JOB}/held", inside)
    let_go(kubectl, namespace)
    kubectl.wait("condition=Complete", f"{JOB}/held", inside)


def test_a_leader_that_the_kernel_kills_leads_again_before_the_lease_expires(
    everywhere: Installation, shared_cluster: SharedCluster, namespace: str
) -> None:
    del shared_cluster  # its nodes' processes are this machine's
    kubectl, inside = everywhere.kubectl, f"--namespace={namespace}"
    kubectl.apply(held_job("held", namespace))
    until(lambda: steps(kubectl, namespace, "held"), START_SECONDS)
    before, leader = ready_pods(kubectl, namespace, "held"), everywhere.leader
    led = follow(replace(everywhere, namespace=namespace), lambda pod: kill_container(everywhere, pod), "killed")
    assert (everywhere.leader, led < STOPPED_SECONDS) == (leader, True)
    assert pods(kubectl, namespace, "held") == before
    let_go(kubectl, namespace)
    kubectl.wait("condition=Complete", f"{JOB}/held", inside)
    end = status(kubectl, namespace, "held")
    assert (end["attempt"], succeeded(end)) == (1, "4/4")


def kill_container(release: Installation, pod: str) -> None:
    """Kill the processes of a replica."""
    found = json.loads(release.kubectl("get", "pod", pod, f"--namespace={release.system}", "--output=json"))
    machine.kill(*machine.processes(found, "muster"))
