"""The program that an mpirun is given in place of ssh: a file in the run folder, ready to be executed."""

from __future__ import annotations

import os

from muster_worker.environment import Place
from muster_worker.executable import write_executable

_NAME = "remote"


def program(run: str) -> str:
    """Its path. On a cluster it is the same on all nodes: Intel MPI's daemons start other daemons by it."""
    return os.path.join(run, _NAME)


def desk(run: str) -> str:
    """Where this node's agent takes what the program wants."""
    return os.path.join(run, "calls.sock")


def write_program(place: Place) -> None:
    """Write it. Raises `OSError`."""
    write_executable(program(place.run), place.python, place.archive, ("remote", desk(place.run)))
