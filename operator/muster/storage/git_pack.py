"""What a pack of git's would unpack to, found out without unpacking it: a kilobyte may say that it is a terabyte.

Format: git's documentation, "gitformat-pack".
"""

from __future__ import annotations

import zlib
from typing import BinaryIO

_PIECE = 2**16
_HEAD_BYTES = 12
_NAME_BYTES = 20
_LARGEST_VARINTS = 20
_MORE = 0x80
_OFS_DELTA, _REF_DELTA = 6, 7


class TooLarge(Exception):
    """A pack has more objects, or more in them, than is allowed."""


def check_pack(pack: BinaryIO, most_bytes: int, most_objects: int) -> None:
    """Raises `TooLarge`, and `ValueError` for what is no pack. The position in `pack` is its end afterwards."""
    pack.seek(0)
    head = pack.read(_HEAD_BYTES)
    if len(head) < _HEAD_BYTES or head[:4] != b"PACK":
        raise ValueError("it is no pack of git's")
    count = int.from_bytes(head[8:], "big")
    if count > most_objects:
        raise TooLarge
    reader, left = _Reader(pack), most_bytes
    for _ in range(count):
        left -= _entry(reader, left)
    pack.seek(0, 2)


def _entry(reader: _Reader, most: int) -> int:
    """How many bytes an entry unpacks to, a delta with what it makes of its base."""
    first = reader.byte()
    kind = first >> 4 & 7
    if first & _MORE:
        reader.skip_varint()
    if kind == _OFS_DELTA:
        reader.skip_varint()
    if kind == _REF_DELTA:
        reader.take(_NAME_BYTES)
    size, start = _inflated(reader, most)
    if kind in (_OFS_DELTA, _REF_DELTA):
        size += _delta_result(start)
    if size > most:
        raise TooLarge
    return size


def _inflated(reader: _Reader, most: int) -> tuple[int, bytes]:
    """The size of a compressed stream's content, and how it begins."""
    stream, size, start = zlib.decompressobj(), 0, b""
    data = b""
    while not stream.eof:
        data = data or reader.piece()
        try:
            out = stream.decompress(data, _PIECE)
        except zlib.error as error:
            raise ValueError(str(error)) from None
        data = stream.unconsumed_tail
        start = (start + out)[:_LARGEST_VARINTS] if len(start) < _LARGEST_VARINTS else start
        size += len(out)
        if size > most:
            raise TooLarge
    reader.give_back(stream.unused_data)
    return size, start


def _delta_result(start: bytes) -> int:
    """The size of what a delta makes: the second of the two numbers that it begins with."""
    number, shift, is_second = 0, 0, False
    for byte in start:
        number |= (byte & ~_MORE) << shift
        shift += 7
        if not byte & _MORE:
            if is_second:
                return number
            number, shift, is_second = 0, 0, True
    raise ValueError("the pack has a delta without a size")


class _Reader:
    """A file's bytes, of which some may be given back."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._left = b""

    def piece(self) -> bytes:
        piece, self._left = self._left or self._file.read(_PIECE), b""
        if not piece:
            raise ValueError("the pack ends in the middle of an object")
        return piece

    def take(self, count: int) -> bytes:
        while len(self._left) < count:
            known, self._left = self._left, b""
            self._left = known + self.piece()
        taken, self._left = self._left[:count], self._left[count:]
        return taken

    def byte(self) -> int:
        return self.take(1)[0]

    def skip_varint(self) -> None:
        while self.byte() & _MORE:
            pass

    def give_back(self, data: bytes) -> None:
        self._left = data
