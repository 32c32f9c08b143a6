"""Real agents, started from the archive, and a real HTTPS collector."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.agent_world import AgentWorld


@pytest.fixture
def world(tmp_path: Path) -> Iterator[AgentWorld]:
    """Yield a job's nodes on this machine; processes that still run at the end are killed."""
    with AgentWorld(tmp_path) as made:
        yield made
