"""The frames that carry a command to another node and its output back: a kind, a length, that many bytes. Pure.

Who calls sends one RUN frame. Who is called answers with any number of OUT and ERR frames and one END frame; a stream
that ends before END means that nobody knows how the command ended. Read by `client.py` as well, which starts once a
daemon: nothing is imported that takes time.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Tuple

RUN = b"r"  # the node's name and the command, with a null byte between them
OUT = b"o"  # a piece of the command's standard output
ERR = b"e"  # ... and of its standard error
EXITED = b"x"  # END: the exit code, in decimal
SIGNALLED = b"s"  # END: the number of the signal that ended it
REFUSED = b"f"  # END: why the command was not run, for people

LENGTH_BYTES = 4
HEADER_BYTES = 1 + LENGTH_BYTES

MAX_COMMAND_BYTES = 128 * 1024
"""Linux allows no longer argument (MAX_ARG_STRLEN), and the command is one argument of /bin/sh."""

MAX_PIECE_BYTES = 64 * 1024
MAX_END_BYTES = 4096

LIMITS = {
    RUN: MAX_COMMAND_BYTES,
    OUT: MAX_PIECE_BYTES,
    ERR: MAX_PIECE_BYTES,
    EXITED: 3,
    SIGNALLED: 3,
    REFUSED: MAX_END_BYTES,
}


class BadFrame(ValueError):
    """What came is no frame of ours: nothing more of that stream can be trusted."""


def encode(kind: bytes, payload: bytes) -> bytes:
    """One frame. Raises `BadFrame` for a payload that the other end would refuse."""
    if len(payload) > LIMITS[kind]:
        raise BadFrame(f"{len(payload)} bytes are more than a frame of kind {kind!r} may have ({LIMITS[kind]})")
    return kind + len(payload).to_bytes(LENGTH_BYTES, "big") + payload


class Reader:
    """Takes a stream in pieces of any size; never keeps more than one frame that isn't whole."""

    def __init__(self, *kinds: bytes) -> None:
        """`kinds` are those that this end may be sent."""
        self._kinds = kinds
        self._data = b""

    @property
    def is_empty(self) -> bool:
        """Whether nothing has come of the next frame."""
        return not self._data

    def feed(self, data: bytes) -> List[Tuple[bytes, bytes]]:
        """The frames that are whole now, each a kind and its payload. Raises `BadFrame`."""
        self._data += data
        frames = []
        start = 0
        while True:
            kind = self._data[start : start + 1]
            if kind and kind not in self._kinds:
                raise BadFrame(f"a frame of kind {kind!r} was not expected here")
            if len(self._data) - start < HEADER_BYTES:
                break
            length = int.from_bytes(self._data[start + 1 : start + HEADER_BYTES], "big")
            if length > LIMITS[kind]:
                raise BadFrame(f"a frame of kind {kind!r} says it has {length} bytes; {LIMITS[kind]} are allowed")
            end = start + HEADER_BYTES + length
            if len(self._data) < end:
                break
            frames.append((kind, self._data[start + HEADER_BYTES : end]))
            start = end
        self._data = self._data[start:]
        return frames


def number(payload: bytes, most: int) -> int:
    """The number of an EXITED or SIGNALLED frame. Raises `BadFrame`."""
    if not payload.isdigit() or int(payload) > most:
        raise BadFrame(f"{payload!r} is no number from 0 to {most}")
    return int(payload)
