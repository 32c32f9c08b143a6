"""The executable for PYTHON_EXEC, which torchrun then uses as its ranks' interpreter: a rank's wrapper in disguise."""

from __future__ import annotations

import os
import shlex

SHIM_NAME = "python-exec"


def write_python_exec(run_dir: str, archive: str, python: str) -> str:
    """Write the shim into `run_dir`; its path is the value for PYTHON_EXEC. Raises `OSError`.

    `archive` and `python` are the agent's own: its zipapp and its interpreter.
    """
    path = os.path.join(run_dir, SHIM_NAME)
    wrapper = " ".join(shlex.quote(part) for part in (python, "-I", "-S", archive, "rank", "--python-of-parent", "--"))
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o700)
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        file.write(f'#!/bin/sh\nexec {wrapper} "$@"\n')
    return path
