"""Namespaces, the observation of their jobs, and the server to which their ranks report."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from cluster.crashes.bench import Bench
from cluster.crashes.lives import LIVES, Life, Place
from cluster.crashes.rank_desk import RankDesk
from cluster.crashes.records import Record, record_all
from cluster.crashes.world import World
from cluster.shared import Kubectl, SharedCluster
from muster.api.crd import format_crd_yaml
from muster.clients.kubernetes.client import Client

NAMESPACES = 2 * len(LIVES)


@pytest.fixture(scope="session")
def namespaces(cluster_with_jobs: Kubectl) -> Iterator[tuple[str, ...]]:
    """Yield the namespaces of these tests."""
    prefix = f"test-crash-{secrets.token_hex(2)}"
    names = tuple(f"{prefix}-{number}" for number in range(NAMESPACES))
    cluster_with_jobs.apply(*({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in names))
    for name in names:
        cluster_with_jobs.wait("create", "serviceaccount/default", f"--namespace={name}")
    yield names
    cluster_with_jobs("delete", "namespace", *names, "--wait=false")


@pytest.fixture(scope="session")
def cluster_with_jobs(shared_cluster: SharedCluster) -> Kubectl:
    """Return a cluster with the CRD, whose pods reach this machine."""
    shared_cluster.up()
    kubectl = Kubectl(shared_cluster.kubeconfig)
    kubectl.define(format_crd_yaml())
    return kubectl


@pytest.fixture
async def places(cluster_with_jobs: Kubectl, namespaces: tuple[str, ...]) -> AsyncIterator[tuple[Place, ...]]:
    """One place for each namespace, whose jobs are observed."""
    world = World()
    desk = RankDesk(world.stir)
    client = await Client.connect(str(cluster_with_jobs.kubeconfig))
    try:
        async with world.watched(client, namespaces), desk.served():
            yield tuple(Place(client, world, desk, namespace) for namespace in namespaces)
    finally:
        await client.close()


@pytest.fixture(scope="session")
def numbers() -> Iterator[int]:
    """Numbers for names, so that events of an earlier test's jobs don't belong to the next test's."""
    return itertools.count()


@pytest.fixture
async def benches(
    places: tuple[Place, ...], numbers: Iterator[int], tmp_path: Path
) -> AsyncIterator[tuple[Bench, ...]]:
    """One bench for each namespace. No operator runs yet."""

    def names(life: Life) -> str:
        return f"{life.name}{next(numbers)}"

    async with AsyncExitStack() as stack:
        ready = []
        for place in places:
            folder = tmp_path / place.namespace
            folder.mkdir()
            ready.append(await stack.enter_async_context(Bench.ready(place, folder, names)))
        yield tuple(ready)


@pytest.fixture(scope="session")
def known_records() -> list[Record]:
    """Stores `records` from test to test."""
    return []


@pytest.fixture
async def records(benches: tuple[Bench, ...], known_records: list[Record]) -> tuple[Record, ...]:
    """Scenarios without accidents."""
    if not known_records:
        known_records += await record_all(benches)
    return tuple(known_records)
