"""The file by which an agent announces a stop to all ranks of its node. `stopping.py` reads it.

The agent creates it for each attempt, and each rank maps it into memory. Both fields are aligned 8-byte words in the
machine's byte order, which are written atomically.

    word 0  monotonic time in seconds until which a rank waits for word 1; 0: the ranks are not being stopped
    word 1  the number of the first call of `muster_worker.stopping` that returns True; 0: not decided yet
"""

from __future__ import annotations

import mmap
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Tuple

NAME = "stop"
SIZE = 16
WORD_WAIT_UNTIL, WORD_STOP_CALL = 0, 1


def get_stop_file_path(progress_path: str) -> str:
    """Return the path of the file for the rank with this progress file."""
    return os.path.join(os.path.dirname(progress_path), NAME)


def create(run_dir: str) -> Tuple[memoryview[int], memoryview[float]]:
    """Create the file of a new attempt. Returns its words as integers and as times. Raises `OSError`."""
    path = os.path.join(run_dir, NAME)
    try:
        os.unlink(path)  # of the last attempt
    except FileNotFoundError:
        pass
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.ftruncate(fd, SIZE)
        return _cast_words(mmap.mmap(fd, SIZE))
    finally:
        os.close(fd)


def read(path: str) -> Tuple[memoryview[int], memoryview[float]]:
    """Map the file for reading. Returns its words as integers and as times. Raises `OSError` or `ValueError`."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return _cast_words(mmap.mmap(fd, SIZE, access=mmap.ACCESS_READ))
    finally:
        os.close(fd)


def _cast_words(area: mmap.mmap) -> Tuple[memoryview[int], memoryview[float]]:
    return memoryview(area).cast("Q"), memoryview(area).cast("d")
