"""The examples on the cluster, with an operator installed by the chart."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

from cluster.conftest import not_run
from cluster.digits.example_job import PREPARE, Surroundings
from cluster.digits.trained import Trained, train
from cluster.helm import Helm
from cluster.installation import Installer
from cluster.shared import Cluster, Kubectl, SharedCluster
from cluster.torch_volume import NoTorch, provide


@pytest.fixture(scope="session")
def surroundings(shared_cluster: SharedCluster, tmp_path_factory: pytest.TempPathFactory) -> Surroundings:
    """Return the images, prepared on this machine, where the nodes see them."""
    shared_cluster.up()
    data = tmp_path_factory.mktemp("digits")
    subprocess.run([sys.executable, PREPARE, data], check=True, capture_output=True)
    try:
        return Surroundings(provide(), data)
    except NoTorch as why:
        not_run(str(why))


@pytest.fixture(scope="module")
def trained(cluster: Cluster, installer: Installer, surroundings: Surroundings) -> Iterator[Trained]:
    """Train the classifier once. The result has all output of the run."""
    kubectl = Kubectl(cluster.kubeconfig)
    installation = installer.provide(kubectl, Helm(cluster.kubeconfig))
    with train(kubectl, installation.namespace, surroundings) as done:
        yield done
