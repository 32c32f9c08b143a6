"""Open files in a folder of the ranks without following links, which the ranks may create at any time.

The storage containers have more rights than the ranks, which write to the same folders.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK prevents a wait if the file is a pipe.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@contextmanager
def pin_file(folder: Path, path: str) -> Iterator[Path]:
    """Yield a path that always refers to the regular file now at `path` below `folder`. Raises `OSError`.

    Resolve links within `folder` first. If a link changes meanwhile, the file counts as missing.
    """
    root = folder.resolve()
    real_path = Path(os.path.realpath(root / path, strict=True))
    if not real_path.is_relative_to(root):
        raise FileNotFoundError(errno.ENOENT, "the path leads out of the folder", path)
    with _open_folder(root, real_path.relative_to(root).parts[:-1], creates_folders=False) as parent:
        file = os.open(real_path.name, _FILE, dir_fd=parent)
        try:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise FileNotFoundError(errno.ENOENT, "the path is not a regular file", path)
            # On other systems, the ranks run as the same user, so they can read the files anyway.
            yield Path(f"/proc/self/fd/{file}") if sys.platform == "linux" else real_path
        finally:
            os.close(file)


def move_into(file: Path, folder: Path, path: str) -> None:
    """Move `file` to `path` below `folder`, on the same file system, and create parent folders. Raises `OSError`."""
    parts = Path(path).parts
    with _open_folder(folder, parts[:-1], creates_folders=True) as parent:
        os.replace(file, parts[-1], dst_dir_fd=parent)


@contextmanager
def _open_folder(folder: Path, parts: tuple[str, ...], *, creates_folders: bool) -> Iterator[int]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts:
            if creates_folders:
                _make_folder(part, descriptor)
            child = os.open(part, _FOLDER, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = child
        yield descriptor
    finally:
        os.close(descriptor)


def _make_folder(name: str, parent: int) -> None:
    try:
        os.mkdir(name, dir_fd=parent)
    except FileExistsError:
        return
