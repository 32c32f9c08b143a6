"""Folders that are filled once, and kept in ~/.cache/muster for all later runs."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from muster_dev import fetch_uv
from muster_dev.places import REQUIREMENTS, cache


def kept(name: str, make: Callable[[Path], None]) -> Path:
    """The folder `name` in ~/.cache/muster, filled by `make` when it isn't there."""
    folder = cache() / name
    if not folder.is_dir():
        # another process may do the same: each fills a folder of its own, and renaming is all or nothing
        with tempfile.TemporaryDirectory(dir=cache()) as scratch:
            made = Path(scratch) / "made"
            make(made)
            if not folder.is_dir():
                made.rename(folder)
    return folder


def installed(name: str, lock: str) -> Path:
    """The folder `name`, with a digest at its end, into which requirements/`lock` is installed; a name is one lock's.

    It is a place for PYTHONPATH, apart from .venv: nothing of the two meets.
    """
    file = REQUIREMENTS / lock
    # Not the head, which changes with pyproject.toml: what is in the folder doesn't.
    entries = [line for line in file.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    key = hashlib.sha256("\n".join([*entries, sys.version]).encode()).hexdigest()[:12]
    return kept(f"{name}-{key}", lambda folder: _install(file, folder))


def _install(lock: Path, folder: Path) -> None:
    command = [str(fetch_uv.uv()), "pip", "install", "--quiet", "--no-deps", "--require-hashes"]
    command += ["--python", sys.executable]
    subprocess.run([*command, "--target", folder, "-r", lock], check=True, env=fetch_uv.environment())
