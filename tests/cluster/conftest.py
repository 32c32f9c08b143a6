"""The cluster that the tests of this folder share, and its clients."""

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from cluster import choice, torch_volume
from cluster.choice import Kind, NamedCluster, NotRun, Own
from cluster.helm import Helm
from cluster.installation import Installation, Installer
from cluster.namespaces import Namespaces
from cluster.others import GivenCluster, KindCluster
from cluster.shared import Cluster, Kubectl, SharedCluster
from cluster.suite import WHOLE_RUN
from cluster.torch_volume import NoTorch, TorchVolume
from muster.api.crd import format_crd_yaml
from muster.clients.kubernetes.client import Client

MARKS = {
    "own": {"own_cluster"},
    "whole": {"whole_run"},
    # `guarded` works on any cluster, and skips on those whose pods can't reach this machine.
    "ours": {"shared_cluster", "guarded"},
}
"""The markers of tests that use one of these fixtures."""

LONGEST = (
    *("reasons/test_elastic_training.py", "digits/test_digits.py", "security/test_hostile_resources.py"),
    *("security/test_forged_reports.py", "operator/test_sagemaker.py", "digits/test_page.py"),
    *("leftovers/test_deletion.py", "reasons/test_resumptions.py", "operator/test_shards.py"),
    *("storage/test_storage.py", "networks/test_fabric.py", "reasons/test_elastic.py", "reasons/test_killed_ranks.py"),
)
"""Files that take a minute or more, the longest first: while the last of them runs, the other workers have the rest."""


def pytest_configure(config: pytest.Config) -> None:
    """Let pytest-xdist begin with the first tests: it would begin with the files that have the most tests."""
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by their fixtures. Some run first because they stop the cluster or take long, some last because they
    check the whole run.
    """
    order = {Path(__file__).parent / name: number for number, name in enumerate(LONGEST)}
    names = {item: getattr(item, "fixturenames", ()) for item in items}
    for item in items:
        for mark, fixtures in MARKS.items():
            if not fixtures.isdisjoint(names[item]):
                item.add_marker(mark)
    items.sort(
        key=lambda item: (
            "whole_run" in names[item],
            "own_cluster" not in names[item],
            order.get(item.path, len(LONGEST)),
        )
    )


@pytest.fixture
def whole_run(request: pytest.FixtureRequest) -> bool:
    """Whether all tests of this folder run, or have run before on this cluster."""
    if os.environ.get(WHOLE_RUN):
        return True
    files = {item.path for item in request.session.items}
    chosen = bool(request.config.option.keyword or request.config.option.markexpr)
    return not chosen and files.issuperset(Path(__file__).parent.rglob("test_*.py"))


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Yield the cluster to test on, not necessarily started."""
    chosen: Cluster
    match choice.choose(choice.look()):
        case NamedCluster() as given:
            chosen = GivenCluster(given)
        case Own():
            chosen = SharedCluster()
        case Kind():
            chosen = KindCluster()
        case NotRun(why):
            not_run(why)
    yield chosen
    chosen.close()


@pytest.fixture(scope="session")
def shared_cluster(cluster: Cluster) -> SharedCluster:
    """Return the cluster if it is our own. Its pods reach this machine, and its nodes are processes of this machine."""
    if not isinstance(cluster, SharedCluster):
        pytest.skip(
            "it needs the cluster that the tests make of this machine, and they run on another (docs/cluster.md)"
        )
    return cluster


@pytest.fixture
def kubectl(cluster: Cluster) -> Kubectl:
    """kubectl on a running cluster."""
    cluster.up()
    return Kubectl(cluster.kubeconfig)


@pytest.fixture
def helm(cluster: Cluster) -> Helm:
    """helm on a running cluster."""
    cluster.up()
    return Helm(cluster.kubeconfig)


@pytest.fixture(scope="session")
def crd(cluster: Cluster) -> None:
    """Give the cluster the jobs' CustomResourceDefinition."""
    cluster.up()
    Kubectl(cluster.kubeconfig).define(format_crd_yaml())


@pytest.fixture(scope="session")
def namespace_store(cluster: Cluster) -> Iterator[Namespaces]:
    """Yield a store of new namespaces."""
    cluster.up()
    store = Namespaces()
    yield store
    store.close(Kubectl(cluster.kubeconfig))


@pytest.fixture
def namespace(kubectl: Kubectl, namespace_store: Namespaces) -> Iterator[str]:
    """Yield a namespace for the test."""
    name = namespace_store.take(kubectl)
    yield name
    kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture
async def client(kubectl: Kubectl) -> AsyncIterator[Client]:
    """Yield a direct client of the API server, with all permissions."""
    connected = await Client.connect(str(kubectl.kubeconfig))
    yield connected
    await connected.close()


@pytest.fixture(scope="session")
def installer(cluster: Cluster) -> Iterator[Installer]:
    """Stores `installed_operator` between tests."""
    installer = Installer(cluster)
    yield installer
    installer.close()


@pytest.fixture
def installed_operator(installer: Installer, kubectl: Kubectl, helm: Helm) -> Installation:
    """Return the ready operator, installed by the chart from an image of this tree; it runs the jobs of one namespace.

    It serves one namespace only, so that it doesn't conflict with the operators of other tests.
    """
    return installer.provide(kubectl, helm)


@pytest.fixture(scope="session")
def torch_for_pods(cluster: Cluster) -> TorchVolume:
    """Return the parts of a pod with PYTHON_IMAGE that it needs to import torch and similar packages."""
    if isinstance(cluster, GivenCluster):
        return torch_volume.NOTHING
    if isinstance(cluster, KindCluster):
        # Its image is built for this environment's Python.
        return torch_volume.of(torch_volume.folders())
    try:
        return torch_volume.provide()
    except NoTorch as why:
        not_run(str(why))


@pytest.fixture
def own_cluster(shared_cluster: SharedCluster) -> SharedCluster:
    """Return the machine's cluster for tests that stop it; it is stopped when they begin."""
    if shared_cluster.kept:
        not_run("a cluster that isn't the tests' runs on this machine: `make cluster-down` first")
    shared_cluster.down()
    return shared_cluster


def not_run(why: str) -> NoReturn:
    """Skip the test, or fail in continuous integration, where all tests have to run."""
    if os.environ.get("CI") == "true":
        pytest.fail(why)
    pytest.skip(why)
