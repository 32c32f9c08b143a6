"""Folders in ~/.cache/muster that are filled once and used by all later runs."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from muster_dev import fetch_uv
from muster_dev.paths import REQUIREMENTS, get_cache_folder

_BUILT_HERE = "deepspeed"
"""A package without wheels. The setuptools of .venv builds it, because it is locked."""


def fill_folder(name: str, fill: Callable[[Path], None]) -> Path:
    """Return the folder `name` in ~/.cache/muster. If it doesn't exist, create it and fill it with `fill`."""
    folder = get_cache_folder() / name
    if not folder.is_dir():
        # Another process may do the same. Each process fills its own folder, and renaming is atomic.
        with tempfile.TemporaryDirectory(dir=get_cache_folder()) as scratch:
            content = Path(scratch) / "made"
            fill(content)
            if not folder.is_dir():
                content.rename(folder)
    return folder


def install_folder(name: str, lock: str) -> Path:
    """Return a folder with the packages of requirements/`lock`. Its name is `name` and a digest of the packages.

    The folder is for PYTHONPATH, so that its packages don't mix with those of .venv.
    """
    file = REQUIREMENTS / lock
    # Ignore the header, because it changes with pyproject.toml.
    entries = [line for line in file.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    key = hashlib.sha256("\n".join([*entries, sys.version]).encode()).hexdigest()[:12]
    return fill_folder(f"{name}-{key}", lambda folder: _install(file, folder))


def _install(lock: Path, folder: Path) -> None:
    command = [str(fetch_uv.find_uv()), "pip", "install", "--quiet", "--no-deps", "--require-hashes"]
    command += ["--no-build-isolation-package", _BUILT_HERE, "--python", sys.executable]
    # uv leaves a file there when it builds a package.
    environment = {**fetch_uv.build_uv_environment(), "TMPDIR": str(folder.parent)}
    subprocess.run([*command, "--target", folder, "-r", lock], check=True, env=environment)
