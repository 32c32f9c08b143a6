"""The cluster that the tests of this folder share."""

import os
from collections.abc import Iterator
from typing import NoReturn

import pytest

from cluster.shared import Kubectl, SharedCluster


@pytest.fixture(scope="session")
def shared_cluster() -> Iterator[SharedCluster]:
    """The machine's cluster, not necessarily up."""
    if os.geteuid() != 0:
        not_run("the cluster needs root, for its namespaces, mounts and cgroups")
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
        not_run("a cluster that isn't the tests' runs on this machine: `make cluster-down` first")
    shared_cluster.down()
    return shared_cluster


def not_run(why: str) -> NoReturn:
    """Skip; in continuous integration, where everything has to run, fail."""
    if os.environ.get("CI") == "true":
        pytest.fail(why)
    pytest.skip(why)
