"""Files that others execute, and which are a sub-command of this agent's archive. They need nothing of the image."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from typing import Optional, Sequence

_MAX_FIRST_LINE = 127
"""Bytes that Linux before 5.1 reads of a '#!' line (linux/binfmts.h: BINPRM_BUF_SIZE)."""


@dataclass(frozen=True)
class Unpacked:
    """A folder with the modules that a sub-command needs, compiled: it starts in half the time that the archive takes.

    `module` has a `main` that takes what the archive's would.
    """

    folder: str
    module: str


def write_executable(
    path: str, python: str, archive: str, arguments: Sequence[str], unpacked: Optional[Unpacked] = None
) -> None:
    """Write a program that runs `agent.pyz ARGUMENTS...` with its own arguments after these. Raises `OSError`.

    `archive` and `python` are the agent's own: its zipapp and its interpreter.
    """
    unpacked = unpacked or Unpacked(archive, "muster_worker.entry")
    first = os.fsencode(f"#!{python} -IS")
    is_fit = len(first) <= _MAX_FIRST_LINE and not any(char.isspace() for char in python)
    # an image may have no shell; a path that no first line can hold is none of an image
    text = first + _as_python(unpacked, arguments) if is_fit else _for_shell(python, archive, arguments)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o700)
    with os.fdopen(descriptor, "wb") as file:
        file.write(text)


def _as_python(unpacked: Unpacked, arguments: Sequence[str]) -> bytes:
    lines = (
        "",
        "import sys",
        f"sys.path.insert(0, {unpacked.folder!a})",
        f"from {unpacked.module} import main",
        f"sys.exit(main({list(arguments)!a} + sys.argv[1:]))",
        "",
    )
    return "\n".join(lines).encode("ascii")


def _for_shell(python: str, archive: str, arguments: Sequence[str]) -> bytes:
    command = " ".join(shlex.quote(word) for word in (python, "-I", "-S", archive, *arguments))
    return os.fsencode(f'#!/bin/sh\nexec {command} "$@"\n')
