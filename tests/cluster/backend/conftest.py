"""A job, and a backend that creates its pods on a real API server."""

import pytest

from cluster.backend.world import World
from muster.clients.kubernetes.client import Client


@pytest.fixture
async def world(crd: None, client: Client, namespace: str) -> World:
    """Return a job of two nodes without pods."""
    del crd  # the cluster has it
    return await World.begin(client, namespace)
