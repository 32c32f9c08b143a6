"""Split a stream of bytes into lines of bounded length."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

MAX_LINE_BYTES = 64 * 1024 * 1024
"""The maximum length of a line. A watch's line is one object: 1.5 MiB in etcd at most, six times that as JSON."""


@dataclass
class LineSplitter:
    """Splits chunks into lines. Lines longer than `max_bytes` are discarded; `dropped` counts them."""

    max_bytes: int = MAX_LINE_BYTES
    dropped: int = 0
    _pieces: list[bytes] = field(default_factory=list)
    _size: int = 0

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the lines that a chunk completes, without line ends and without empty lines."""
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            self._add(chunk[start:end])
            start = end + 1
            if self._size > self.max_bytes:
                self.dropped += 1
            elif self._size:
                yield b"".join(self._pieces)
            self._pieces, self._size = [], 0
        self._add(chunk[start:])

    def _add(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self.max_bytes:
            self._pieces = []
        elif piece:
            self._pieces.append(piece)
