"""A namespace with its own operator, for many tests."""

import contextlib
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from cluster.helm import Helm
from cluster.operator.cluster_jobs import Jobs
from cluster.operator.operator_process import Replicas, account, replicas
from cluster.shared import Cluster, Kubectl, SharedCluster
from muster.api.crd import format_crd_yaml


@dataclass(frozen=True)
class Site:
    """`operators` are processes of this machine, none of them started yet. They run the jobs of `second`, too."""

    kubectl: Kubectl
    namespace: str
    second: str
    operators: Replicas

    @property
    def jobs(self) -> Jobs:
        """The jobs of the namespace."""
        return Jobs(self.kubectl, self.namespace)

    @property
    def said(self) -> str:
        """Return the log of all operators of the site."""
        return "\n".join(operator.said for operator in self.operators.started)


@contextlib.contextmanager
def new_site(
    cluster: Cluster, name: str, folder: Path, shards: int = 1, queues: tuple[str, ...] = ()
) -> Iterator[Site]:
    """Yield a site in namespaces that are deleted at the end; skips if pods can't reach this machine.

    The operators have the rights and the Services of this number of shards, and the rights for these `queues`.
    """
    if not isinstance(cluster, SharedCluster):
        pytest.skip("pods of another cluster don't reach the operator on this machine")
    cluster.up()
    kubectl, namespace = Kubectl(cluster.kubeconfig), f"test-{name}-{uuid.uuid4().hex[:6]}"
    second = f"{namespace}-second"
    kubectl.define(format_crd_yaml())
    try:
        for each in (namespace, second):
            kubectl("create", "namespace", each)
            kubectl.wait("create", "serviceaccount/default", f"--namespace={each}")
        rights = account(kubectl, Helm(cluster.kubeconfig), namespace, folder, (second,), shards=shards, queues=queues)
        with replicas(kubectl, rights, namespace, folder, (second,), shards) as operators:
            yield Site(kubectl, namespace, second, operators)
    finally:
        kubectl("delete", "namespace", namespace, second, "--wait=false", "--ignore-not-found")
