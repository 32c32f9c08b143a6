"""The program that an mpirun is given in place of ssh: a file in the run folder, ready to be executed."""

from __future__ import annotations

import os
import shlex

from muster_worker.environment import Place

_NAME = "remote"


def program(run: str) -> str:
    """Its path. On a cluster it is the same on all nodes: Intel MPI's daemons start other daemons by it."""
    return os.path.join(run, _NAME)


def desk(run: str) -> str:
    """Where this node's agent takes what the program wants."""
    return os.path.join(run, "calls.sock")


def write_program(place: Place) -> None:
    """Write it. Raises `OSError`."""
    command = (place.python, "-I", "-S", place.archive, "remote", desk(place.run))
    text = f'#!/bin/sh\nexec {" ".join(map(shlex.quote, command))} "$@"\n'
    descriptor = os.open(program(place.run), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o700)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
