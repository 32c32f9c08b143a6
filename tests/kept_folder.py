"""Folders that tests fill once, and keep for all later runs."""

import tempfile
from collections.abc import Callable
from pathlib import Path

from muster_dev.places import cache


def kept(name: str, make: Callable[[Path], None]) -> Path:
    """The folder `name` in ~/.cache/muster, filled by `make` when it isn't there."""
    folder = cache() / name
    if not folder.is_dir():
        # another test may do the same: each fills a folder of its own, and renaming is all or nothing
        with tempfile.TemporaryDirectory(dir=cache()) as scratch:
            made = Path(scratch) / "made"
            make(made)
            if not folder.is_dir():
                made.rename(folder)
    return folder
