"""A job, and a backend that makes its pods on a real API server."""

import pytest

from cluster.backend.world import World
from cluster.shared import Kubectl
from muster.api.crd import crd_yaml
from muster.clients.kubernetes.client import Client


@pytest.fixture
async def world(kubectl: Kubectl, client: Client, namespace: str) -> World:
    """A job of two nodes that has not been started."""
    kubectl.define(crd_yaml())
    return await World.begin(client, namespace)
