"""The previous version is upgraded while a job trains, tested, rolled back and uninstalled."""

import json
from collections.abc import Iterator

import pytest
import yaml

from cluster import audit, places, rights
from cluster.ended_job import succeeded
from cluster.held_job import JOB, held_job, let_go, pods, ready_pods, status, steps
from cluster.helm import WAIT_SECONDS, Helm
from cluster.installation import RELEASE, Installation, installed
from cluster.installed.awaited import until
from cluster.previous_chart import PREVIOUS_CHART, read_previous_crds
from cluster.shared import Cluster, Kubectl
from muster.api.crd import format_crd_yaml
from muster.cli.crds.version import VERSION_ANNOTATION
from muster.distribution import get_version

# The CRD of all tests is an older one for a while.
pytestmark = [pytest.mark.long, pytest.mark.alone]

CRD = "distributedtrainingjobs.muster.dev"
COUNTING = "jsonpath={.status.progress.step}"
# A new leader has to be elected first.
STEP_SECONDS = 60.0


def crd_version(kubectl: Kubectl) -> str:
    crd = json.loads(kubectl("get", "crd", CRD, "--output=json"))
    return str(crd["metadata"].get("annotations", {}).get(VERSION_ANNOTATION, ""))


def hook_accounts(release: Installation) -> set[str]:
    """Return the ServiceAccounts of hooks that still exist."""
    names = release.kubectl("get", "serviceaccounts", f"--namespace={release.system}", "--output=name").split()
    return {name.removeprefix("serviceaccount/") for name in names} & {"muster-crds", "muster-test"}


def uses_and_grants(release: Installation, account: str) -> tuple[frozenset[rights.Use], frozenset[rights.Grant]]:
    """Return the requests of a hook's ServiceAccount, and its permissions."""
    hooks = release.helm("get", "hooks", RELEASE, f"--namespace={release.system}")
    objects = [each for each in yaml.safe_load_all(hooks) if each]
    whole = f"{release.system}:{account}"
    return rights.uses(audit.events(places.state()), whole), rights.grants(objects, whole)


@pytest.fixture
def previous_crd(kubectl: Kubectl) -> Iterator[None]:
    """Give the cluster the CRD of the previous version, as Helm did, and the current one at the end."""
    for crd in read_previous_crds():
        kubectl.define(crd)
    kubectl("annotate", "crd", CRD, f"{VERSION_ANNOTATION}-")
    yield
    kubectl.define(format_crd_yaml())


@pytest.mark.timeout(600)
@pytest.mark.usefixtures("shared_cluster", "previous_crd")
def test_an_upgrade_from_the_previous_version_and_back_is_nothing_to_a_job_that_trains(
    cluster: Cluster, kubectl: Kubectl, helm: Helm, namespace: str
) -> None:
    here = f"--namespace={namespace}"
    values = {"namespaces": [namespace], "webhook": {"enabled": True}}
    with installed(cluster, kubectl, helm, values, PREVIOUS_CHART) as release:
        inside = f"--namespace={release.system}"
        kubectl.apply(held_job("trains", namespace), held_job("ended", namespace, nodes=1, procs_per_node=1))
        for job in ("trains", "ended"):
            kubectl.wait(COUNTING, f"{JOB}/{job}", here)
        let_go(kubectl, namespace, "ended")
        kubectl.wait("condition=Complete", f"{JOB}/ended", here)
        running, ended = ready_pods(kubectl, namespace, "trains"), status(kubectl, namespace, "ended")

        def assert_nothing_happened() -> None:
            then = steps(kubectl, namespace, "trains")
            until(lambda: steps(kubectl, namespace, "trains") > then > 1, STEP_SECONDS)
            assert pods(kubectl, namespace, "trains") == running
            assert status(kubectl, namespace, "trains")["attempt"] == 1
            assert status(kubectl, namespace, "ended") == ended

        assert crd_version(kubectl) == ""
        helm.install(RELEASE, release.system, release.values)
        assert crd_version(kubectl) == get_version()
        assert hook_accounts(release) == set()
        assert_nothing_happened()

        helm("test", RELEASE, inside, f"--timeout={WAIT_SECONDS}s")
        assert hook_accounts(release) == set()
        for account, on_a_new_cluster in (("muster-crds", {"create"}), ("muster-test", set())):
            used, granted = uses_and_grants(release, account)
            assert used
            assert rights.not_granted(used, granted) == []
            assert {each.verb for each in rights.not_used(granted, used)} == on_a_new_cluster

        helm("rollback", RELEASE, inside, "--wait", f"--timeout={WAIT_SECONDS}s")
        assert crd_version(kubectl) == get_version()
        assert_nothing_happened()

        helm.uninstall(RELEASE, release.system)
        assert pods(kubectl, namespace, "trains") == running
        assert status(kubectl, namespace, "ended") == ended
        helm.install(RELEASE, release.system, release.values)
        assert_nothing_happened()
        let_go(kubectl, namespace, "trains")
        kubectl.wait("condition=Complete", f"{JOB}/trains", here)
        end = status(kubectl, namespace, "trains")
        assert (end["attempt"], succeeded(end)) == (1, "4/4")
