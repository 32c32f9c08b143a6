"""A gang of two nodes whose agents' ends are here."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from muster.backends.agent_archive import agent_archive
from remote_gang import RemoteGang


@pytest.fixture
def gang(tmp_path: Path) -> Iterator[RemoteGang]:
    """Nodes 0 and 1; whatever they have started is killed."""
    archive = tmp_path / "agent.pyz"
    archive.write_bytes(agent_archive())
    with RemoteGang(archive) as made:
        yield made
