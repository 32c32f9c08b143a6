"""muster for some namespaces does nothing in others."""

import json

from cluster import rights
from cluster.held_job import JOB, held_job, let_go, pods, status
from cluster.installation import Installation
from muster.api.status.status import DEFAULT_STATUS

COUNTING = "jsonpath={.status.progress.step}"
CLUSTER_SCOPED = {
    "clustertrainingtemplates",
    "mutatingwebhookconfigurations",
    "nodes",
    "validatingwebhookconfigurations",
}
"""What this installation uses and no namespace has: it reads the nodes' taints, and templates for all namespaces."""
RIGHTS = "roles,rolebindings,clusterroles,clusterrolebindings"


def test_a_job_of_another_namespace_is_left_alone(installed_operator: Installation, namespace: str) -> None:
    kubectl, own = installed_operator.kubectl, installed_operator.namespace
    kubectl.apply(held_job("another", namespace))
    # A job that is applied later runs from start to end in the meantime.
    kubectl.apply(held_job("own", own, nodes=1, procs_per_node=1))
    kubectl.wait(COUNTING, f"{JOB}/own", f"--namespace={own}")
    let_go(kubectl, own, "own")
    kubectl.wait("condition=Complete", f"{JOB}/own", f"--namespace={own}")
    assert status(kubectl, namespace, "another") == DEFAULT_STATUS
    assert pods(kubectl, namespace) == {}
    kubectl("delete", JOB, "own", f"--namespace={own}")


def test_it_has_rights_in_its_namespaces_only(installed_operator: Installation) -> None:
    listed = json.loads(installed_operator.kubectl("get", RIGHTS, "--all-namespaces", "--output=json"))
    granted = rights.grants(listed["items"], f"{installed_operator.system}:muster")
    own = (f"muster-{installed_operator.system}",)
    cluster_scoped = {grant for grant in granted if grant.resource in CLUSTER_SCOPED}
    assert {grant.resource for grant in cluster_scoped} == CLUSTER_SCOPED
    for grant in cluster_scoped:
        # It changes only its own webhooks.
        assert grant.verb in {"get", "list", "watch"} or grant.names == own, grant
    namespaces = {grant.namespace for grant in granted - cluster_scoped}
    assert namespaces == {installed_operator.system, installed_operator.namespace}
