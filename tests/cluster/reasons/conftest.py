"""One operator and one namespace for all that can go wrong with a job, watched from the beginning."""

import uuid
from collections.abc import Iterator

import pytest

from cluster.helm import Helm
from cluster.operator.operator_process import account, replicas
from cluster.reasons.stage import Stage
from cluster.reasons.timeline import Timeline
from cluster.shared import Cluster, Kubectl, SharedCluster
from muster.api.crd import crd_yaml


@pytest.fixture(scope="session")
def stage(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Where jobs are put on."""
    if not isinstance(cluster, SharedCluster):
        pytest.skip("pods of another cluster don't reach the operator on this machine")
    cluster.up()
    kubectl, folder = Kubectl(cluster.kubeconfig), tmp_path_factory.mktemp("reasons")
    namespace = f"test-reasons-{uuid.uuid4().hex[:6]}"
    kubectl.define(crd_yaml())
    kubectl("create", "namespace", namespace)
    kubectl.wait("create", "serviceaccount/default", f"--namespace={namespace}")
    timeline = Timeline(kubectl, namespace)
    try:
        rights = account(kubectl, Helm(cluster.kubeconfig), namespace, folder)
        with replicas(kubectl, rights, namespace, folder) as operators:
            yield Stage(kubectl, namespace, timeline, operators.start())
    finally:
        timeline.close()
        kubectl("delete", "namespace", namespace, "--wait=false")
