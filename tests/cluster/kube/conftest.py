"""A proxy between a client and the API server."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cluster.api_proxy import ApiProxy
from cluster.shared import Kubectl
from muster.clients.kubernetes.client import Client


@pytest.fixture
async def proxy(kubectl: Kubectl, tmp_path: Path) -> AsyncIterator[ApiProxy]:
    async with ApiProxy.serve(tmp_path, kubectl.kubeconfig) as served:
        yield served


@pytest.fixture
async def proxied(proxy: ApiProxy) -> AsyncIterator[Client]:
    """Yield a client behind the proxy."""
    connected = await Client.connect(str(proxy.kubeconfig))
    yield connected
    await connected.close()
