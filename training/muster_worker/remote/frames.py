"""The frames of a command for another node: one byte for the kind, a length, and the payload. Pure.

The caller sends a RUN frame. The other side answers with OUT and ERR frames and one END frame. If the stream ends
without an END frame, the command's exit status is unknown. The program of `client.py` starts once per
daemon, so this module imports nothing slow.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import List, Tuple

RUN = b"r"  # the node's name and the command, separated by a null byte
OUT = b"o"  # a piece of the command's standard output
ERR = b"e"  # a piece of its standard error
EXITED = b"x"  # END: the exit code as a decimal number
SIGNALLED = b"s"  # END: the number of the signal
REFUSED = b"f"  # END: the reason why the command was not run

LENGTH_BYTES = 4
HEADER_BYTES = 1 + LENGTH_BYTES

MAX_COMMAND_BYTES = 128 * 1024
"""Linux' limit for an argument (MAX_ARG_STRLEN); the command is one argument of /bin/sh."""

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
    """The data is not a valid frame. The rest of the stream is unusable."""


def encode(kind: bytes, payload: bytes) -> bytes:
    """Encode a frame. Raises `BadFrame` for a payload that the other side would reject."""
    if len(payload) > LIMITS[kind]:
        raise BadFrame(f"{len(payload)} bytes are more than a frame of kind {kind!r} may have ({LIMITS[kind]})")
    return kind + len(payload).to_bytes(LENGTH_BYTES, "big") + payload


class Reader:
    """Decodes a stream that arrives in pieces. It buffers at most one incomplete frame."""

    def __init__(self, *kinds: bytes) -> None:
        """`kinds` are the kinds that this side accepts."""
        self._kinds = kinds
        self._data = b""

    @property
    def is_empty(self) -> bool:
        """Whether no part of the next frame has arrived."""
        return not self._data

    def feed(self, data: bytes) -> List[Tuple[bytes, bytes]]:
        """Add data. Returns the complete frames as (kind, payload). Raises `BadFrame`."""
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
                raise BadFrame(f"a frame of kind {kind!r} has {length} bytes; {LIMITS[kind]} are allowed")
            end = start + HEADER_BYTES + length
            if len(self._data) < end:
                break
            frames.append((kind, self._data[start + HEADER_BYTES : end]))
            start = end
        self._data = self._data[start:]
        return frames


def decode_number(payload: bytes, maximum: int) -> int:
    """Decode the number of an EXITED or SIGNALLED frame. Raises `BadFrame`."""
    if not payload.isdigit() or int(payload) > maximum:
        raise BadFrame(f"{payload!r} is not a number from 0 to {maximum}")
    return int(payload)
