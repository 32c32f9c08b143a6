"""Files that others execute, and which are a sub-command of this agent's archive. They need nothing of the image."""

from __future__ import annotations

import os
import shlex
from typing import Sequence

_MAX_FIRST_LINE = 127
"""Bytes that Linux before 5.1 reads of a '#!' line (linux/binfmts.h: BINPRM_BUF_SIZE)."""


def write_executable(path: str, python: str, archive: str, arguments: Sequence[str]) -> None:
    """Write a program that runs `agent.pyz ARGUMENTS...` with its own arguments after these. Raises `OSError`.

    `archive` and `python` are the agent's own: its zipapp and its interpreter.
    """
    first = os.fsencode(f"#!{python} -IS")
    is_fit = len(first) <= _MAX_FIRST_LINE and not any(char.isspace() for char in python)
    # an image may have no shell; a path that no first line can hold is none of an image
    text = first + _as_python(archive, arguments) if is_fit else _for_shell(python, archive, arguments)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o700)
    with os.fdopen(descriptor, "wb") as file:
        file.write(text)


def _as_python(archive: str, arguments: Sequence[str]) -> bytes:
    lines = (
        "",
        "import sys",
        f"sys.path.insert(0, {archive!a})",
        "from muster_worker.entry import main",
        f"sys.exit(main({list(arguments)!a} + sys.argv[1:]))",
        "",
    )
    return "\n".join(lines).encode("ascii")


def _for_shell(python: str, archive: str, arguments: Sequence[str]) -> bytes:
    command = " ".join(shlex.quote(word) for word in (python, "-I", "-S", archive, *arguments))
    return os.fsencode(f'#!/bin/sh\nexec {command} "$@"\n')
