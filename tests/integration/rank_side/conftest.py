import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from fakes.rank_side_agent import Agent


@pytest.fixture
def agent() -> Iterator[Agent]:
    # not tmp_path: a Unix socket's path has at most 107 bytes
    folder = Path(tempfile.mkdtemp(prefix="muster-")).resolve()
    agent = Agent(folder)
    yield agent
    agent.close()
    shutil.rmtree(folder)
