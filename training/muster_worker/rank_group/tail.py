"""The last of what a rank wrote: enough for its traceback, never more than fixed memory."""

from __future__ import annotations

import string
from typing import Tuple

from muster_worker.contract.schema import MAX_LAST_LINES, MAX_LINE_CHARS
from muster_worker.rank_group.lines import clean

TAIL_BYTES = 64 * 1024
"""What is kept of each stream: room for the traceback of a deep recursion, which Python itself shortens."""

_NOTHING = f"{string.whitespace}\0"
"""Of a line with no other characters nobody sees anything; Open MPI 5 ends its last words with such a one."""

_ELLIPSIS = "…"


class Tail:
    """The last `TAIL_BYTES` of a stream."""

    def __init__(self) -> None:
        self._data = bytearray()
        self.total = 0  # bytes ever seen
        self._lines: Tuple[str, ...] = ()
        self._lines_of = 0  # the total that `_lines` belong to

    def feed(self, data: bytes) -> None:
        """Add what was just read."""
        self.total += len(data)
        self._data += data[-TAIL_BYTES:]
        # let it grow to twice the size, so that small writes don't each move the whole
        if len(self._data) > 2 * TAIL_BYTES:
            del self._data[:-TAIL_BYTES]

    @property
    def text(self) -> str:
        """All that is kept, as text."""
        return clean(bytes(self._data[-TAIL_BYTES:])).decode("utf-8")

    def lines(self) -> Tuple[str, ...]:
        """All lines that are kept with something on them, as a report carries them."""
        return tuple(shorten(line.rstrip()) for line in self.text.split("\n") if line.strip(_NOTHING))

    def last_lines(self) -> Tuple[str, ...]:
        """The last lines with something on them, as a report carries them."""
        # asked for in every report, while a rank that ended writes no more
        if self._lines_of != self.total:
            self._lines = self.lines()[-MAX_LAST_LINES:]
            self._lines_of = self.total
        return self._lines


def shorten(line: str) -> str:
    """A line of at most `MAX_LINE_CHARS` characters; a longer one ends in an ellipsis."""
    return line if len(line) <= MAX_LINE_CHARS else line[: MAX_LINE_CHARS - 1] + _ELLIPSIS
