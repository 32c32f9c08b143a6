"""Find the last stacks of ranks that hang in a node's log, where its agent writes them. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from muster.cli.board.printable import replace_unprintable

MAX_LINES = 8000
"""The maximum number of lines of one rank: an agent writes no more at a time, but a user's program can print lines of
the same form.
"""

MAX_RANKS = 1024

_HEADER = re.compile(r"\[muster\] rank (\d{1,7}) (has completed no step for .*)")
_LINE = re.compile(r"\[muster\] rank (\d{1,7}) \| (.*)")


@dataclass
class LatestStacks:
    """The latest stacks of each rank, as lines of a node's log."""

    lines: dict[int, list[str]] = field(default_factory=dict)

    def add(self, text: str) -> None:
        """Read a line of the log."""
        header, line = _HEADER.match(text), _LINE.match(text)
        if header is not None and (int(header[1]) in self.lines or len(self.lines) < MAX_RANKS):
            self.lines[int(header[1])] = [replace_unprintable(header[2])]
        elif line is not None and 0 < len(self.lines.get(int(line[1]), ())) <= MAX_LINES:
            self.lines[int(line[1])].append(replace_unprintable(line[2]))
