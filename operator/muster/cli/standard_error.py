"""Standard error that may go away: a closed terminal must not keep a run from stopping its ranks."""

from __future__ import annotations

import io
from typing import TextIO


class StandardError(io.TextIOBase):
    """Passes text on for as long as its reader takes it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._gone = False

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._stream.encoding

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()

    def write(self, text: str) -> int:
        if not self._gone:
            try:
                self._stream.write(text)
            except OSError:
                self._gone = True
        return len(text)

    def flush(self) -> None:
        if not self._gone:
            try:
                self._stream.flush()
            except OSError:
                self._gone = True
