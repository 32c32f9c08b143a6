"""Real agents, started from the archive, and a real HTTPS collector that they talk to."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.agent_world import AgentWorld


@pytest.fixture
def world(tmp_path: Path) -> Iterator[AgentWorld]:
    """A job's nodes on this machine; whatever still runs at the end is killed."""
    with AgentWorld(tmp_path) as made:
        yield made
