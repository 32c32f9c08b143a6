"""Real agents, a real collector, and real MPI implementations."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.agent_world import AgentWorld
from support.mpi_installs import NAMES, Install, install_or_skip


@pytest.fixture
def world(tmp_path: Path) -> Iterator[AgentWorld]:
    """Yield a job's nodes on this machine; processes that still run at the end are killed."""
    with AgentWorld(tmp_path) as made:
        yield made


# Intel MPI starts ranks as MPICH does, by Hydra. What is peculiar to Open MPI 4 has tests that name it.
LONG = ("impi", "openmpi4")


@pytest.fixture(params=[pytest.param(name, marks=[pytest.mark.long] if name in LONG else []) for name in NAMES])
def mpi(request: pytest.FixtureRequest) -> Install:
    """Each implementation in turn."""
    return install_or_skip(request.param)
