"""A job, and a backend that creates its pods on a real API server."""

import pytest

from cluster.backend.world import World
from cluster.shared import Kubectl
from muster.api.crd import format_crd_yaml
from muster.clients.kubernetes.client import Client


@pytest.fixture
async def world(kubectl: Kubectl, client: Client, namespace: str) -> World:
    """Return a job of two nodes without pods."""
    kubectl.define(format_crd_yaml())
    return await World.begin(client, namespace)
