"""A stream of bytes as lines: whole ones are passed on at once, whatever the program writes does no harm."""

from __future__ import annotations

from typing import Tuple

MAX_PENDING = 64 * 1024
"""Bytes without a newline that are waited for; then they are passed on as a line of their own."""


_CONTINUATION = 0x80  # the two high bits of every byte of a character but its first, in UTF-8


class LineSplitter:
    """Cuts what arrives into lines. Bad UTF-8 is replaced; what a carriage return overwrites is left out."""

    def __init__(self) -> None:
        self.overwritten = b""
        """The last whole text that what was fed last has overwritten: a progress bar as it was a moment ago."""
        self._pending = b""

    def feed(self, data: bytes) -> bytes:
        """The whole lines that `data` completes, each ending in a newline."""
        cut = data.rfind(b"\n") + 1
        if cut:
            whole, self._pending = self._pending + data[:cut], data[cut:]
        else:
            whole, self._pending = b"", self._pending + data
        self.overwritten = b""
        if b"\r" in self._pending:
            self.overwritten, self._pending = _overwritten_and_left(self._pending)
        pieces = b""
        if len(self._pending) > MAX_PENDING:
            pieces, self._pending = _pieces(self._pending)
        return clean(whole + pieces)

    def end(self) -> bytes:
        """What is left when the stream ends, as a line; empty when nothing is."""
        rest, self._pending = self._pending, b""
        return clean(rest + b"\n") if rest else b""


def clean(lines: bytes) -> bytes:
    """Lines as UTF-8 text in which nothing overwrites what stands before it."""
    if b"\r" in lines:
        lines = b"\n".join(_visible(line) for line in lines.split(b"\n"))
    try:
        lines.decode("utf-8")
    except UnicodeDecodeError:
        return lines.decode("utf-8", "replace").encode("utf-8")
    return lines


def with_prefix(lines: bytes, prefix: bytes) -> bytes:
    """`prefix` before every line of `lines`, which end in a newline each."""
    if not lines:
        return b""
    return prefix + lines[:-1].replace(b"\n", b"\n" + prefix) + b"\n"


def _visible(line: bytes) -> bytes:
    line = line.rstrip(b"\r")
    return line[line.rfind(b"\r") + 1 :]


def _overwritten_and_left(pending: bytes) -> Tuple[bytes, bytes]:
    # the text before a final \r stays on the screen until something else is written
    cut = pending.rstrip(b"\r").rfind(b"\r") + 1
    return _visible(pending[:cut]), pending[cut:]


def _pieces(pending: bytes) -> Tuple[bytes, bytes]:
    pieces = []
    start = 0
    while len(pending) - start > MAX_PENDING:
        end = start + MAX_PENDING
        # not between the bytes of one character; no character has more than three of these
        for _ in range(3):
            if pending[end] & 0xC0 != _CONTINUATION:
                break
            end -= 1
        pieces.append(pending[start:end])
        start = end
    return b"\n".join(pieces) + b"\n", pending[start:]
