"""muster as its users install it: by the chart, on a namespace or on the whole cluster, and gone again."""

import json

from cluster.helm import Helm
from cluster.installation import RELEASE, SELECTOR, Installation, installed
from cluster.shared import Cluster, Kubectl

CRD = "crd/distributedtrainingjobs.muster.dev"


def everything(kubectl: Kubectl) -> set[str]:
    """All that bears the release's labels, in all namespaces, of every kind that can be listed."""
    kinds = kubectl("api-resources", "--verbs=list", "--output=name").split()
    listed = kubectl(
        *("get", ",".join(kinds), "--all-namespaces", f"--selector={SELECTOR}", "--ignore-not-found"),
        "--output=jsonpath={range .items[*]}{.kind}/{.metadata.name}{'\\n'}{end}",
    )
    return set(listed.split())


def test_the_operator_is_ready_and_one_of_its_replicas_leads(installed_operator: Installation) -> None:
    pods = installed_operator.pods
    assert len(pods) == 2
    assert any(installed_operator.leader.startswith(pod) for pod in pods)
    ready = installed_operator.kubectl(
        *("get", "deployment", "muster", f"--namespace={installed_operator.system}"),
        "--output=jsonpath={.status.readyReplicas}",
    )
    assert ready == "2"


def test_an_uninstalled_muster_leaves_the_crd_and_nothing_else(cluster: Cluster, kubectl: Kubectl, helm: Helm) -> None:
    before = everything(kubectl)
    with installed(cluster, kubectl, helm, {"networkPolicy": {"enabled": True}}) as installation:
        assert everything(kubectl) - before
        helm.uninstall(RELEASE, installation.system)
        kubectl("wait", "--for=delete", "pods", f"--selector={SELECTOR}", f"--namespace={installation.system}")
        assert everything(kubectl) == before
        left = json.loads(kubectl("get", "secrets,leases", f"--namespace={installation.system}", "--output=json"))
        assert left["items"] == []
    assert kubectl("get", CRD, "--output=name")
