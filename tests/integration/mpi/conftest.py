"""Real agents, a real collector, and real MPI implementations."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import mpi_installs
from agent_world import AgentWorld
from mpi_installs import Install


@pytest.fixture
def world(tmp_path: Path) -> Iterator[AgentWorld]:
    """A job's nodes on this machine; whatever still runs at the end is killed."""
    with AgentWorld(tmp_path) as made:
        yield made


@pytest.fixture(params=mpi_installs.NAMES)
def mpi(request: pytest.FixtureRequest) -> Install:
    """Each implementation in turn."""
    return installed(request.param)


@pytest.fixture
def open_mpi_5() -> Install:
    return installed("openmpi5")


def installed(name: str) -> Install:
    """An implementation; a skip, with the reason, where it can't be had."""
    why = mpi_installs.missing(name)
    if why is not None:
        pytest.skip(why)
    return mpi_installs.install(name)
