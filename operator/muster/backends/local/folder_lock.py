"""A run's folder belongs to one run at a time."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class FolderInUse(Exception):
    """Another run writes to the folder now."""


@contextmanager
def own_folder(folder: Path) -> Iterator[None]:
    """Make `folder` if need be, and keep other runs out of it for as long as the `with` lasts.

    Raises `FolderInUse`, and `OSError` when it can't be made. The lock is the kernel's: a run that was killed has none.
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
