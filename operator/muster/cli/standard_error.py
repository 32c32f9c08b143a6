"""Write to standard error, and ignore a closed terminal, so that the run can still stop its ranks."""

from __future__ import annotations

import io
from typing import TextIO


class StandardError(io.TextIOBase):
    """A stream that writes to another stream until the reader of that stream closes it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._closed_by_reader = False

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._stream.encoding

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()

    def write(self, text: str) -> int:
        if not self._closed_by_reader:
            try:
                self._stream.write(text)
            except OSError:
                self._closed_by_reader = True
        return len(text)

    def flush(self) -> None:
        if not self._closed_by_reader:
            try:
                self._stream.flush()
            except OSError:
                self._closed_by_reader = True
