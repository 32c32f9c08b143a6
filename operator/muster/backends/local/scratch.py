"""Create a run's private folder: with a short path, readable by its owner only, and removed after the run."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from typing import Self

_PREFIX = "muster-"
_LOCK = "muster-run.lock"  # only muster uses this name: a folder that contains it unlocked gets deleted


class Scratch:
    """A temporary folder, removed at the end of the `with` block.

    Its lock file is locked during the run. The next run removes the folders of killed runs: their lock files are
    unlocked.
    """

    def __init__(self, base: Path) -> None:
        self._base = base
        self._lock = -1
        self.folder = base

    def __enter__(self) -> Self:
        _remove_leftovers(self._base)
        self.folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=self._base))
        draft_lock = self.folder / f"{_LOCK}.draft"
        self._lock = os.open(draft_lock, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        draft_lock.rename(self.folder / _LOCK)  # lock the file before it gets the name that other runs look for
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        os.close(self._lock)


def _remove_leftovers(base: Path) -> None:
    for folder in base.glob(f"{_PREFIX}*"):
        try:
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            continue  # not a run's folder, or another run creates or removes it now
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            continue  # the run still uses it
        finally:
            os.close(lock)
