"""Splits a stream of bytes into lines that are safe to log."""

from __future__ import annotations

from typing import Tuple

MAX_PENDING = 64 * 1024
"""Maximum length of an incomplete line. A longer line is split."""


_CONTINUATION = 0x80  # the two high bits of a continuation byte in UTF-8


class LineSplitter:
    """Splits a stream into lines. Replaces invalid UTF-8, and drops text that a progress bar overwrites."""

    def __init__(self) -> None:
        self.overwritten = b""
        """The last text that the newest data has overwritten, such as the previous state of a progress bar."""
        self._pending_bytes = b""

    def feed(self, data: bytes) -> bytes:
        """Add data. Returns the lines that it completes, each with its newline."""
        end_of_lines = data.rfind(b"\n") + 1
        if end_of_lines:
            complete_lines, self._pending_bytes = self._pending_bytes + data[:end_of_lines], data[end_of_lines:]
        else:
            complete_lines, self._pending_bytes = b"", self._pending_bytes + data
        self.overwritten = b""
        if b"\r" in self._pending_bytes:
            self.overwritten, self._pending_bytes = _split_overwritten(self._pending_bytes)
        chunks = b""
        if len(self._pending_bytes) > MAX_PENDING:
            chunks, self._pending_bytes = _split_long(self._pending_bytes)
        return clean_lines(complete_lines + chunks)

    def end(self) -> bytes:
        """Return the incomplete last line when the stream ends; empty if the last line is complete."""
        incomplete_line, self._pending_bytes = self._pending_bytes, b""
        return clean_lines(incomplete_line + b"\n") if incomplete_line else b""


def clean_lines(lines: bytes) -> bytes:
    """Return the lines as valid UTF-8, without text that is overwritten after a carriage return."""
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


def _split_overwritten(pending_bytes: bytes) -> Tuple[bytes, bytes]:
    # A terminal shows the text before a final \r until the program writes more.
    end_of_lines = pending_bytes.rstrip(b"\r").rfind(b"\r") + 1
    return _remove_overwritten(pending_bytes[:end_of_lines]), pending_bytes[end_of_lines:]


def _split_long(pending_bytes: bytes) -> Tuple[bytes, bytes]:
    chunks = []
    start = 0
    while len(pending_bytes) - start > MAX_PENDING:
        end = start + MAX_PENDING
        # Don't split a character: it has at most three continuation bytes.
        for _ in range(3):
            if pending_bytes[end] & 0xC0 != _CONTINUATION:
                break
            end -= 1
        chunks.append(pending_bytes[start:end])
        start = end
    return b"\n".join(chunks) + b"\n", pending_bytes[start:]
