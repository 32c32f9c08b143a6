"""Where things are in this checkout, and where downloads are kept outside of it."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PYPROJECT = ROOT / "pyproject.toml"
REQUIREMENTS = ROOT / "requirements"
VENV = ROOT / ".venv"
BIN = VENV / "bin"
PYTHON = BIN / "python"


def cache() -> Path:
    """The folder for what is downloaded, shared by all checkouts: ~/.cache/muster. It exists afterwards."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "muster"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
