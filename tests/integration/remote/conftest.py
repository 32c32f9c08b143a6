"""A rank group of two nodes whose agents' ends are here."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from muster.render.agent_archive import agent_archive
from support.remote_rank_group import RemoteRankGroup


@pytest.fixture
def rank_group(tmp_path: Path) -> Iterator[RemoteRankGroup]:
    """Nodes 0 and 1; whatever they have started is killed."""
    archive = tmp_path / "agent.pyz"
    archive.write_bytes(agent_archive())
    with RemoteRankGroup(archive) as made:
        yield made
