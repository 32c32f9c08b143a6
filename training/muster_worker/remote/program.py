"""The program that an mpirun is given in place of ssh: a file in the run folder, ready to be executed."""

from __future__ import annotations

import os
import pkgutil
import py_compile

from muster_worker.launchers.environment import Place
from muster_worker.machine.executable import Unpacked, write_executable

_NAME = "remote"
_MODULES = ("__init__.py", "remote/__init__.py", "remote/client.py", "remote/frames.py")
"""All that it imports of ours. It is started once a daemon, 64 times and more at once: milliseconds count."""


def program(run: str) -> str:
    """Its path. On a cluster it is the same on all nodes: Intel MPI's daemons start other daemons by it."""
    return os.path.join(run, _NAME)


def desk(run: str) -> str:
    """Where this node's agent takes what the program wants."""
    return os.path.join(run, "calls.sock")


def write_program(place: Place) -> None:
    """Write it. Raises `OSError`."""
    unpacked = _unpack(os.path.join(place.run, "remote-modules"))
    write_executable(program(place.run), place.python, place.archive, ("remote", desk(place.run)), unpacked)


def _unpack(folder: str) -> Unpacked:
    package = os.path.join(folder, "muster_worker")
    os.makedirs(os.path.join(package, "remote"), mode=0o700, exist_ok=True)
    for name in _MODULES:
        path = os.path.join(package, name)
        with open(path, "wb") as file:
            file.write(pkgutil.get_data("muster_worker", name) or b"")
        py_compile.compile(path, doraise=True)
    return Unpacked(folder, "muster_worker.remote.client")
