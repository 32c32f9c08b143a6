"""A job in a namespace of its own, and a backend that makes its pods on a real API server."""

import secrets
from collections.abc import AsyncIterator, Iterator

import pytest

from cluster.backend.world import World
from cluster.shared import Kubectl
from muster.api.crd import crd_yaml
from muster.kube.client import Client


@pytest.fixture
def namespace(kubectl: Kubectl) -> Iterator[str]:
    name = f"test-backend-{secrets.token_hex(3)}"
    kubectl("create", "namespace", name)
    kubectl.wait("create", "serviceaccount/default", f"--namespace={name}")
    yield name
    kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture
async def client(kubectl: Kubectl) -> AsyncIterator[Client]:
    connected = await Client.connect(str(kubectl.kubeconfig))
    yield connected
    await connected.close()


@pytest.fixture
async def world(kubectl: Kubectl, client: Client, namespace: str) -> World:
    """A job of two nodes that nobody has begun to run."""
    kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=crd_yaml())
    kubectl("wait", "--for=condition=Established", "crd/distributedtrainingjobs.muster.dev")
    return await World.begin(client, namespace)
