"""Lock a run's folder, so that only one run uses it at a time."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class FolderInUse(Exception):
    """Another run uses the folder."""


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Create `folder` if necessary, and lock it until the `with` block ends.

    Raises `FolderInUse`, and `OSError` if it can't be created. The kernel releases the lock of a killed run.
    """
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FolderInUse(f"{folder}: another run uses this folder now") from None
        yield
    finally:
        os.close(descriptor)
