"""muster is uninstalled while jobs run, and installed again."""

import pytest

from cluster.ended_job import succeeded
from cluster.held_job import JOB, held_job, let_go, pods, ready_pods, status, steps
from cluster.helm import Helm
from cluster.installation import RELEASE, SELECTOR, installed
from cluster.installed.awaited import until
from cluster.say import say
from cluster.shared import Cluster, Kubectl

pytestmark = pytest.mark.long

CRDS = {
    f"CustomResourceDefinition/{kind}.muster.dev"
    for kind in ("distributedtrainingjobs", "trainingtemplates", "clustertrainingtemplates")
}
OF_ANY_NAMESPACE = {"ConfigMap/kube-root-ca.crt", "ServiceAccount/default"}
START_SECONDS = 120.0
# An agent whose ranks have ended exits after a minute without an answer.
ALONE_SECONDS = 150.0
# The kubelet updates ConfigMaps, by which agents get a new collector's authority, every minute and a half.
HEARD_AGAIN_SECONDS = 150.0


def inside(kubectl: Kubectl, namespace: str) -> set[str]:
    """Return all objects of a namespace except events."""
    return objects(kubectl, "true", f"--namespace={namespace}")


def outside(kubectl: Kubectl, *namespaces: str) -> set[str]:
    """Return all cluster-scoped objects, and those with an owner outside these namespaces."""
    others = set(kubectl("get", "namespaces", "--output=jsonpath={.items[*].metadata.name}").split()) - {*namespaces}
    return {
        each
        for each in objects(kubectl, "false")
        # The Service's address is deleted with it, and the API server itself adds and removes the group of CRDs.
        if not each.startswith(("Namespace/", "IPAddress/", "APIService/"))
        and not any(other in each for other in others)
    }


def objects(kubectl: Kubectl, namespaced: str, *options: str) -> set[str]:
    """Return the output of `kubectl get` for all kinds."""
    kinds = kubectl("api-resources", "--verbs=list", "--output=name", f"--namespaced={namespaced}").split()
    wanted = ",".join(kind for kind in kinds if not kind.startswith("events"))
    line = "--output=jsonpath={range .items[*]}{.kind}/{.metadata.name}{'\\n'}{end}"
    return set(kubectl("get", wanted, "--ignore-not-found", line, *options).split())


@pytest.mark.timeout(600)
def test_uninstalled_it_leaves_jobs_and_the_crds_and_installed_again_it_judges_them_right(
    cluster: Cluster, kubectl: Kubectl, helm: Helm, namespace: str
) -> None:
    here = f"--namespace={namespace}"
    empty, before = inside(kubectl, namespace), outside(kubectl)
    values = {"namespaces": [namespace], "networkPolicy": {"enabled": True}}
    with installed(cluster, kubectl, helm, values) as release:
        assert outside(kubectl, release.system) - before
        kubectl.apply(held_job("goes-on", namespace))
        kubectl.apply(*(held_job(name, namespace, nodes=1, procs_per_node=1) for name in ("ends", "fails")))
        until(lambda: all(steps(kubectl, namespace, job) for job in ("goes-on", "ends", "fails")), START_SECONDS)
        running = ready_pods(kubectl, namespace)
        children = inside(kubectl, namespace) - empty

        helm.uninstall(RELEASE, release.system)
        kubectl.wait("delete", "pods", f"--selector={SELECTOR}", f"--namespace={release.system}")
        assert inside(kubectl, release.system) == OF_ANY_NAMESPACE
        assert outside(kubectl, release.system) - before <= CRDS
        assert outside(kubectl) >= CRDS
        rights = {each for each in children if each.startswith("Role")}
        assert inside(kubectl, namespace) == empty | children - rights
        assert pods(kubectl, namespace) == running

        let_go(kubectl, namespace, "ends")
        let_go(kubectl, namespace, "fails", code=3)
        phases = "--output=jsonpath={.items[*].status.phase}"
        until(lambda: "Running" not in kubectl("get", "pods/ends-0-0", "pods/fails-0-0", here, phases), ALONE_SECONDS)
        then = steps(kubectl, namespace, "goes-on")
        helm.install(RELEASE, release.system, release.values)
        kubectl.wait("condition=Complete", f"{JOB}/ends", here)
        kubectl.wait("condition=Failed", f"{JOB}/fails", here)
        assert "Rank 0 on fails-0 failed with exit code 3" in status(kubectl, namespace, "fails")["message"]
        seconds = until(lambda: steps(kubectl, namespace, "goes-on") > then, HEARD_AGAIN_SECONDS)
        say(f"installed again: a job's ranks are heard of after {seconds:.0f} s")
        assert pods(kubectl, namespace) == running
        let_go(kubectl, namespace, "goes-on")
        kubectl.wait("condition=Complete", f"{JOB}/goes-on", here)
        end = status(kubectl, namespace, "goes-on")
        assert (end["attempt"], succeeded(end)) == (1, "4/4")
