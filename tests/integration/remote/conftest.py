"""A rank group of two nodes, with both agents' ends in this process."""

from collections.abc import Iterator

import pytest

from support.agent_folder import share_agent_folder
from support.remote_rank_group import RemoteRankGroup


@pytest.fixture
def rank_group() -> Iterator[RemoteRankGroup]:
    """Nodes 0 and 1; their processes are killed at the end."""
    with RemoteRankGroup(share_agent_folder()) as made:
        yield made
