"""The cluster that the tests of this folder share."""

from collections.abc import Iterator

import pytest

from cluster.shared import Kubectl, SharedCluster


@pytest.fixture(scope="session")
def shared_cluster() -> Iterator[SharedCluster]:
    """The machine's cluster, not necessarily up."""
    shared = SharedCluster()
    yield shared
    shared.close()


@pytest.fixture
def kubectl(shared_cluster: SharedCluster) -> Kubectl:
    """kubectl on a cluster that is up."""
    shared_cluster.up()
    return Kubectl()


@pytest.fixture
def own_cluster(shared_cluster: SharedCluster) -> SharedCluster:
    """The machine's cluster for tests that take it down; it's down when they begin."""
    if shared_cluster.kept:
        pytest.skip("a cluster that isn't the tests' runs on this machine: `make cluster-down` first")
    shared_cluster.down()
    return shared_cluster
