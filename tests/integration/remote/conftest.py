"""A rank group of two nodes, with both agents' ends in this process."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from muster.render.agent_archive import build_agent_archive
from support.remote_rank_group import RemoteRankGroup


@pytest.fixture
def rank_group(tmp_path: Path) -> Iterator[RemoteRankGroup]:
    """Nodes 0 and 1; their processes are killed at the end."""
    archive = tmp_path / "agent.pyz"
    archive.write_bytes(build_agent_archive())
    with RemoteRankGroup(archive) as made:
        yield made
