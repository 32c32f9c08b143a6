"""Read a node's log file line by line while its processes write to it.

The processes write to the file themselves, so that neither the display nor muster can slow them down or lose a line.
"""

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

MAX_LINE_BYTES = 64 * 1024
"""Longer lines are split, to limit the memory."""

BACKLOG_BYTES = 1024 * 1024
"""A terminal that falls this far behind leaves lines out. These are about 10,000 lines, more than a person reads."""

POLL_SECONDS = 0.05
"""The interval between two looks at the file. No event shows that a file has grown."""

_KEPT_BYTES = 64 * 1024
_CHUNK_BYTES = 64 * 1024

OnLine = Callable[[int, str], None]
"""Gets a node and a line of its output, without the line's end."""


@dataclass(frozen=True)
class LineReader:
    """Gets the lines of all nodes. It misses lines once it is `max_backlog_bytes` behind; None: it gets all of them."""

    on_line: OnLine
    max_backlog_bytes: int | None = None


class LogTail:
    """The lines that processes append to the log of `node` from now on. `follow` closes the file at its end."""

    def __init__(self, node: int, path: Path, reader: LineReader) -> None:
        self._node = node
        self._path = path
        self._reader = reader
        self._file: BinaryIO = path.open("rb")
        self._file.seek(0, 2)
        self._partial_line = b""

    async def follow(self, ended: asyncio.Event) -> None:
        """Pass lines on until `ended` is set and the file has no more of them."""
        while True:
            is_last_look, has_more = ended.is_set(), True
            while has_more:
                has_more = self._read_chunk()
                await asyncio.sleep(0)  # the collector has its turn
            if is_last_look:
                break
            try:
                await asyncio.wait_for(ended.wait(), POLL_SECONDS)
            except TimeoutError:
                continue
        if self._partial_line:
            self._pass_on([self._partial_line])
        self._file.close()

    def _read_chunk(self) -> bool:
        """Pass on the next lines. Returns False at the end of the file."""
        limit = self._reader.max_backlog_bytes
        if limit is not None and self._get_size() - self._file.tell() > limit:
            self._leave_lines_out()
        data = self._file.read(_CHUNK_BYTES)
        *lines, self._partial_line = (self._partial_line + data).split(b"\n")
        if len(self._partial_line) > MAX_LINE_BYTES:
            lines.append(self._partial_line)
            self._partial_line = b""
        self._pass_on(lines)
        return bool(data)

    def _leave_lines_out(self) -> None:
        """Go on near the end of the file, at the start of a line, and say how many lines come before."""
        count, left = 0, self._get_size() - _KEPT_BYTES - self._file.tell()
        while left > 0 and (data := self._file.read(min(_CHUNK_BYTES, left))):
            count, left = count + data.count(b"\n"), left - len(data)
        count += self._file.readline(MAX_LINE_BYTES).count(b"\n")
        self._partial_line = b""
        self._pass_on([f"[muster] {count:,} lines are left out here; {self._path} has all of them".encode()])

    def _get_size(self) -> int:
        # The path may lead to another file by now, or to none.
        return os.fstat(self._file.fileno()).st_size

    def _pass_on(self, lines: list[bytes]) -> None:
        for line in lines:
            self._reader.on_line(self._node, line.decode("utf-8", "replace"))
