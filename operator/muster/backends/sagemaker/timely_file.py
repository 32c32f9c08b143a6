"""A file that is uploaded, for so long: botocore's own time limit is one for the next bytes."""

from __future__ import annotations

import os
import time
from typing import BinaryIO


class TimelyFile:
    """Can be read for `seconds` from now, and until `cut`; then its reader gets a `TimeoutError`, and so ends.

    It is read piece by piece, as botocore asks for it, and never as a whole.
    """

    def __init__(self, file: BinaryIO, seconds: float) -> None:
        self._file = file
        self._until = time.monotonic() + seconds
        self._is_cut = False

    def read(self, size: int = -1, /) -> bytes:
        """The next bytes."""
        if self._is_cut or time.monotonic() > self._until:
            raise TimeoutError("the time to upload it is over")
        return self._file.read(size)

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Go on from there."""
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        """Where it goes on."""
        return self._file.tell()

    def cut(self) -> None:
        """No caller waits for it any more."""
        self._is_cut = True
