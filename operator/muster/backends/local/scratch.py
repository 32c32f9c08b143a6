"""A run's private folder: short, for its owner only, and gone when its run is, also one that was killed."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from typing import Self

_PREFIX = "muster-"
_LOCK = "muster-run.lock"  # a name that no folder of somebody else has: what holds one that nobody locks is removed


class Scratch:
    """A folder below the system's folder for temporary files, removed on leaving the `with`.

    The owner holds a lock in it. A folder whose lock is free belongs to a run that was killed, and the next run
    removes it.
    """

    def __init__(self, base: Path) -> None:
        self._base = base
        self._lock = -1
        self.folder = base

    def __enter__(self) -> Self:
        _sweep(self._base)
        self.folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=self._base))
        draft = self.folder / f"{_LOCK}.draft"
        self._lock = os.open(draft, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        draft.rename(self.folder / _LOCK)  # hold the lock before it gets its name
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        os.close(self._lock)


def _sweep(base: Path) -> None:
    for folder in base.glob(f"{_PREFIX}*"):
        try:
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            continue  # not a run's, or one that is being made or removed now
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            continue  # its run goes on
        finally:
            os.close(lock)
