"""The executable for PYTHON_EXEC, which torchrun then uses as its ranks' interpreter: a rank's wrapper in disguise."""

from __future__ import annotations

import os

from muster_worker.machine.executable import write_executable

SHIM_NAME = "python-exec"


def path(run_dir: str) -> str:
    """Where the shim is: the value for PYTHON_EXEC."""
    return os.path.join(run_dir, SHIM_NAME)


def write_python_exec(run_dir: str, archive: str, python: str) -> str:
    """Write the shim into `run_dir`; its path. Raises `OSError`.

    `archive` and `python` are the agent's own: its zipapp and its interpreter.
    """
    shim = path(run_dir)
    write_executable(shim, python, archive, ("rank", "--python-of-parent", "--"))
    return shim
