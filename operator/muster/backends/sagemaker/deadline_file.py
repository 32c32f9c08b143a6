"""A file with a deadline for its upload: botocore's own timeout applies only to the next bytes."""

from __future__ import annotations

import os
import time
from typing import BinaryIO


class DeadlineFile:
    """A file that is readable for `seconds`, or until `cut`. Then reads raise `TimeoutError`, which ends the upload.

    botocore reads it in chunks, never as a whole.
    """

    def __init__(self, file: BinaryIO, seconds: float) -> None:
        self._file = file
        self._until = time.monotonic() + seconds
        self._is_cut = False

    def read(self, size: int = -1, /) -> bytes:
        """Read the next bytes."""
        if self._is_cut or time.monotonic() > self._until:
            raise TimeoutError("the upload took too long")
        return self._file.read(size)

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Change the position."""
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        """Return the position."""
        return self._file.tell()

    def cut(self) -> None:
        """Cancel the upload."""
        self._is_cut = True
