"""Splits a stream of bytes into lines. It passes complete lines on at once and makes any output safe to log."""

from __future__ import annotations

from typing import Tuple

MAX_PENDING = 64 * 1024
"""Maximum length of an incomplete line. A longer one is passed on as a line of its own."""


_CONTINUATION = 0x80  # the two high bits of a continuation byte in UTF-8


class LineSplitter:
    """Splits a stream into lines. It replaces invalid UTF-8 and drops text that a carriage return overwrites."""

    def __init__(self) -> None:
        self.overwritten = b""
        """The last complete text that the newest data has overwritten: a progress bar's previous state."""
        self._pending = b""

    def feed(self, data: bytes) -> bytes:
        """Add data. Returns the lines that it completes, each with its newline."""
        cut = data.rfind(b"\n") + 1
        if cut:
            whole, self._pending = self._pending + data[:cut], data[cut:]
        else:
            whole, self._pending = b"", self._pending + data
        self.overwritten = b""
        if b"\r" in self._pending:
            self.overwritten, self._pending = _split_overwritten(self._pending)
        pieces = b""
        if len(self._pending) > MAX_PENDING:
            pieces, self._pending = _split_long(self._pending)
        return clean(whole + pieces)

    def end(self) -> bytes:
        """Return the incomplete last line when the stream ends; empty without one."""
        rest, self._pending = self._pending, b""
        return clean(rest + b"\n") if rest else b""


def clean(lines: bytes) -> bytes:
    """Lines as valid UTF-8, without the text that carriage returns overwrite."""
    if b"\r" in lines:
        lines = b"\n".join(_remove_overwritten(line) for line in lines.split(b"\n"))
    try:
        lines.decode("utf-8")
    except UnicodeDecodeError:
        return lines.decode("utf-8", "replace").encode("utf-8")
    return lines


def add_prefix(lines: bytes, prefix: bytes) -> bytes:
    """Add `prefix` to every line of `lines`."""
    if not lines:
        return b""
    return prefix + lines[:-1].replace(b"\n", b"\n" + prefix) + b"\n"


def _remove_overwritten(line: bytes) -> bytes:
    line = line.rstrip(b"\r")
    return line[line.rfind(b"\r") + 1 :]


def _split_overwritten(pending: bytes) -> Tuple[bytes, bytes]:
    # a terminal shows the text before a final \r until more is written
    cut = pending.rstrip(b"\r").rfind(b"\r") + 1
    return _remove_overwritten(pending[:cut]), pending[cut:]


def _split_long(pending: bytes) -> Tuple[bytes, bytes]:
    pieces = []
    start = 0
    while len(pending) - start > MAX_PENDING:
        end = start + MAX_PENDING
        # Don't split a character: it has at most three continuation bytes.
        for _ in range(3):
            if pending[end] & 0xC0 != _CONTINUATION:
                break
            end -= 1
        pieces.append(pending[start:end])
        start = end
    return b"\n".join(pieces) + b"\n", pending[start:]
