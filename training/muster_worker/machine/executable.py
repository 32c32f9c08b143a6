"""Writes executable files that run a sub-command of the agent's archive. They need no program of the image."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from typing import Optional, Sequence

_MAX_FIRST_LINE = 127
"""Linux before 5.1 reads only this part of a '#!' line (linux/binfmts.h: BINPRM_BUF_SIZE)."""


@dataclass(frozen=True)
class UnpackedModules:
    """A folder with the compiled modules of a sub-command. They start twice as fast as from the archive.

    `module` has a function `main` that takes the sub-command's arguments.
    """

    folder: str
    module: str


def write_executable(
    path: str, python: str, archive: str, arguments: Sequence[str], modules: Optional[UnpackedModules] = None
) -> None:
    """Write an executable that runs `agent.pyz ARGUMENTS...` and appends its own arguments. Raises `OSError`.

    `archive` is the agent's zipapp and `python` its interpreter.
    """
    modules = modules or UnpackedModules(archive, "muster_worker.entry")
    first = os.fsencode(f"#!{python} -IS")
    fits_first_line = len(first) <= _MAX_FIRST_LINE and not any(char.isspace() for char in python)
    # Prefer Python, because an image may have no shell. Only a very long path needs the shell.
    text = (
        first + _build_python_script(modules, arguments)
        if fits_first_line
        else _build_shell_script(python, archive, arguments)
    )
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o700)
    with os.fdopen(descriptor, "wb") as file:
        file.write(text)


def _build_python_script(modules: UnpackedModules, arguments: Sequence[str]) -> bytes:
    lines = (
        "",
        "import sys",
        f"sys.path.insert(0, {modules.folder!a})",
        f"from {modules.module} import main",
        f"sys.exit(main({list(arguments)!a} + sys.argv[1:]))",
        "",
    )
    return "\n".join(lines).encode("ascii")


def _build_shell_script(python: str, archive: str, arguments: Sequence[str]) -> bytes:
    command = " ".join(shlex.quote(word) for word in (python, "-I", "-S", archive, *arguments))
    return os.fsencode(f'#!/bin/sh\nexec {command} "$@"\n')
