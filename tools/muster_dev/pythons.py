"""Other Pythons of this machine: those that are on the PATH, and those that pyenv keeps."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

OLDEST = (3, 8)
"""What the agent has to run on, and all that is newer."""

NEWEST_MINOR = 16
"""The newest that is looked for."""

KEPT = Path("~/.pyenv/versions")


@lru_cache
def find_python(version: str) -> str | None:
    """A Python of a version ("3.8") that starts, which a version manager's stub may not; None when there is none."""
    candidates = [shutil.which(f"python{version}")]
    candidates += map(str, sorted(KEPT.expanduser().glob(f"{version}.*/bin/python{version}")))
    return next((each for each in candidates if each and starts(each)), None)


def starts(python: str) -> bool:
    """Whether a program runs as Python does."""
    return subprocess.run([python, "-c", ""], check=False, capture_output=True).returncode == 0


def agent_pythons() -> Iterator[tuple[str, str]]:
    """The Pythons here that the agent has to run on, with their versions, the oldest first. Ours is one of them."""
    for minor in range(OLDEST[1], NEWEST_MINOR + 1):
        version = f"3.{minor}"
        python = sys.executable if minor == sys.version_info.minor else find_python(version)
        if python is not None:
            yield version, python
