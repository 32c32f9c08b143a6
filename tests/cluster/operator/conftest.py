"""The operator as a process, and jobs for it: faster than an installed one, for tests that aren't about installing."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.helm import Helm
from cluster.operator.cluster_jobs import Jobs
from cluster.operator.operator_process import OperatorProcess, Replicas, account, replicas
from cluster.shared import Kubectl, SharedCluster
from muster.api.crd import crd_yaml


@pytest.fixture
def operators(
    shared_cluster: SharedCluster, kubectl: Kubectl, helm: Helm, namespace: str, tmp_path: Path
) -> Iterator[Replicas]:
    """Operators as processes for the test's namespace, none of them started."""
    del shared_cluster  # pods of another cluster can't reach this machine
    kubectl.define(crd_yaml())
    with replicas(kubectl, account(kubectl, helm, namespace, tmp_path), namespace, tmp_path) as none_yet:
        yield none_yet


@pytest.fixture
def process_operator(operators: Replicas) -> OperatorProcess:
    """A ready operator."""
    return operators.start()


@pytest.fixture
def jobs(kubectl: Kubectl, namespace: str) -> Jobs:
    """The jobs of the test's namespace."""
    return Jobs(kubectl, namespace)
