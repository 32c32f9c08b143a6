"""Finds other Pythons of this machine, on PATH and in pyenv."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

OLDEST = (3, 8)
"""The oldest Python that the agent supports."""

NEWEST_MINOR = 16
"""The newest Python to look for."""

PYENV_VERSIONS = Path("~/.pyenv/versions")


@lru_cache
def find_python(version: str) -> str | None:
    """Return the path of a Python of this version ("3.8"); None without one.

    Each candidate is run once, because a stub of a version manager may not start. pyenv's own Pythons come first: its
    stub on PATH is a shell script that takes ten times as long.
    """
    of_pyenv = sorted(PYENV_VERSIONS.expanduser().glob(f"{version}.*/bin/python{version}"))
    candidates = [*map(str, of_pyenv), shutil.which(f"python{version}")]
    return next((path for path in candidates if path and is_python(path)), None)


def is_python(python: str) -> bool:
    """Whether a program runs as Python."""
    return subprocess.run([python, "-c", ""], check=False, capture_output=True).returncode == 0


def list_agent_pythons() -> Iterator[tuple[str, str]]:
    """Yield the supported Pythons on this machine with their versions, oldest first, including this one."""
    for minor in range(OLDEST[1], NEWEST_MINOR + 1):
        version = f"3.{minor}"
        python = sys.executable if minor == sys.version_info.minor else find_python(version)
        if python is not None:
            yield version, python
