"""Stores the last part of a stream in bounded memory."""

from __future__ import annotations

import string
from typing import Tuple

from muster_worker.contract.schema import MAX_LAST_LINES, MAX_LINE_CHARS
from muster_worker.rank_group.lines import clean_lines

TAIL_BYTES = 64 * 1024
"""Size per stream. The traceback of a deep recursion fits, because Python abbreviates such tracebacks."""

_INVISIBLE = f"{string.whitespace}\0"
"""Invisible characters. Open MPI 5 ends its error messages with a line of invisible characters."""

_ELLIPSIS = "…"


class Tail:
    """The last `TAIL_BYTES` of a stream."""

    def __init__(self) -> None:
        self._data = bytearray()
        self.total = 0  # bytes read in total
        self._lines: Tuple[str, ...] = ()
        self._lines_total = 0  # the total when `_lines` was computed

    def feed(self, data: bytes) -> None:
        """Add data of the stream."""
        self.total += len(data)
        self._data += data[-TAIL_BYTES:]
        # Allow twice the size, so that a small write doesn't move all the data.
        if len(self._data) > 2 * TAIL_BYTES:
            del self._data[:-TAIL_BYTES]

    @property
    def text(self) -> str:
        """The stored data as text."""
        return clean_lines(bytes(self._data[-TAIL_BYTES:])).decode("utf-8")

    def read_lines(self) -> Tuple[str, ...]:
        """Return all stored lines that are not blank, shortened for a report."""
        return tuple(shorten(line.rstrip()) for line in self.text.split("\n") if line.strip(_INVISIBLE))

    def read_last_lines(self) -> Tuple[str, ...]:
        """Return the last lines that are not blank, shortened for a report."""
        # Cache the lines, because every report contains them, even after the rank's end.
        if self._lines_total != self.total:
            self._lines = self.read_lines()[-MAX_LAST_LINES:]
            self._lines_total = self.total
        return self._lines


def shorten(line: str) -> str:
    """Shorten a line to `MAX_LINE_CHARS` characters, with an ellipsis at the end."""
    return line if len(line) <= MAX_LINE_CHARS else line[: MAX_LINE_CHARS - 1] + _ELLIPSIS
