"""The program that mpirun calls instead of ssh: an executable in the run folder."""

from __future__ import annotations

import os
import pkgutil
import py_compile

from muster_worker.launchers.environment import NodeContext
from muster_worker.machine.executable import UnpackedModules, write_executable

_NAME = "remote"
_MODULES = ("__init__.py", "remote/__init__.py", "remote/client.py", "remote/frames.py")
"""The program's modules. mpirun starts it once per daemon, for 64 daemons at a time, so it has to start fast."""


def get_program_path(run: str) -> str:
    """Return the program's path, the same on all nodes: Intel MPI's daemons start other daemons with it."""
    return os.path.join(run, _NAME)


def get_socket_path(run: str) -> str:
    """Return the path of the agent's socket for the program's requests."""
    return os.path.join(run, "calls.sock")


def write_program(context: NodeContext) -> None:
    """Write the program. Raises `OSError`."""
    modules = _unpack(os.path.join(context.run_dir, "remote-modules"))
    write_executable(
        get_program_path(context.run_dir),
        context.python,
        context.archive,
        ("remote", get_socket_path(context.run_dir)),
        modules,
    )


def _unpack(folder: str) -> UnpackedModules:
    package = os.path.join(folder, "muster_worker")
    os.makedirs(os.path.join(package, "remote"), mode=0o700, exist_ok=True)
    for name in _MODULES:
        path = os.path.join(package, name)
        with open(path, "wb") as file:
            file.write(pkgutil.get_data("muster_worker", name) or b"")
        py_compile.compile(path, doraise=True)
    return UnpackedModules(folder, "muster_worker.remote.client")
