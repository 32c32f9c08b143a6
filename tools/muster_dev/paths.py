"""Paths in this checkout, and the folder for downloads outside of it."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PYPROJECT = ROOT / "pyproject.toml"
REQUIREMENTS = ROOT / "requirements"
VENV = ROOT / ".venv"
BIN = VENV / "bin"
PYTHON = BIN / "python"


def get_cache_folder() -> Path:
    """Return the folder for downloads, ~/.cache/muster, which all checkouts share. Create it if it is missing."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "muster"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
