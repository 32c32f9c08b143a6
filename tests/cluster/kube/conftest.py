"""A namespace of the test's own, a client, and a proxy between the two."""

import secrets
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from cluster.api_proxy import ApiProxy
from cluster.shared import Kubectl
from muster.kube.client import Client


@pytest.fixture
def namespace(kubectl: Kubectl) -> Iterator[str]:
    name = f"test-kube-{secrets.token_hex(3)}"
    kubectl("create", "namespace", name)
    yield name
    kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture
async def client(kubectl: Kubectl) -> AsyncIterator[Client]:
    """Straight to the API server."""
    connected = await Client.connect(str(kubectl.kubeconfig))
    yield connected
    await connected.close()


@pytest.fixture
async def proxy(kubectl: Kubectl, tmp_path: Path) -> AsyncIterator[ApiProxy]:
    async with ApiProxy.serve(tmp_path, kubectl.kubeconfig) as served:
        yield served


@pytest.fixture
async def proxied(proxy: ApiProxy) -> AsyncIterator[Client]:
    """Through the proxy."""
    connected = await Client.connect(str(proxy.kubeconfig))
    yield connected
    await connected.close()
