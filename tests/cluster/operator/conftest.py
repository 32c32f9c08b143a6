"""The operator as a process, and jobs for it. A process starts faster than an operator that the chart installs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.helm import Helm
from cluster.operator.cluster_jobs import Jobs
from cluster.operator.operator_process import Replicas, account, replicas
from cluster.shared import Kubectl, SharedCluster


@pytest.fixture
def operators(
    shared_cluster: SharedCluster, crd: None, kubectl: Kubectl, helm: Helm, namespace: str, tmp_path: Path
) -> Iterator[Replicas]:
    """Yield operators for the test's namespace, as processes that are not started yet."""
    del shared_cluster, crd  # pods of another cluster can't reach this machine
    with replicas(kubectl, account(kubectl, helm, namespace, tmp_path), namespace, tmp_path) as none_yet:
        yield none_yet


@pytest.fixture
def jobs(kubectl: Kubectl, namespace: str) -> Jobs:
    """Return the jobs of the test's namespace."""
    return Jobs(kubectl, namespace)
