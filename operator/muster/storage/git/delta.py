"""Resolve objects that a git pack stores as deltas of other objects.

Format: git's documentation, "gitformat-pack", "Deltified representation". dulwich would load the object, its base and
the delta into memory, and trust the result size in the delta.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from muster.storage.git.objects import CHUNK_BYTES, GitObjects, ObjectPlace

_COPY = 0x80
_MORE = 0x80
_OFFSET_BITS, _SIZE_BITS = 4, 3
_WHOLE_COPY = 0x10000


class BadDelta(ValueError):
    """The data is not a delta of this object."""


@dataclass(frozen=True, slots=True)
class Delta:
    """A delta's position in the file of objects."""

    offset: int
    size: int


def result_size(objects: GitObjects, delta: Delta, base: ObjectPlace) -> int:
    """Return the size of the result according to the delta, in bytes. Raises `BadDelta`."""
    return _read_sizes(_DeltaReader(objects, delta), base)


def apply_delta(objects: GitObjects, delta: Delta, base: ObjectPlace) -> Iterator[bytes]:
    """Apply the delta to `base`, in chunks. Raises `BadDelta`."""
    bytes_ = _DeltaReader(objects, delta)
    remaining = _read_sizes(bytes_, base)
    chunk = bytearray()
    while not bytes_.is_over:
        command = bytes_.next()
        if command & _COPY:
            offset, size = _read_copy(bytes_, command)
            if offset + size > base.size or size > remaining:
                raise BadDelta("a delta copies more than its base has")
            remaining -= size
            for piece in objects.chunks(base.offset + offset, size):
                chunk += piece
                if len(chunk) >= CHUNK_BYTES:
                    yield bytes(chunk)
                    chunk.clear()
        elif command:
            chunk += bytes_.take(command)
            remaining -= command
            if remaining < 0:
                raise BadDelta("a delta's result is larger than it claims")
        else:
            raise BadDelta("a delta has an unknown command")
    yield bytes(chunk)


def _read_copy(bytes_: _DeltaReader, command: int) -> tuple[int, int]:
    offset = size = 0
    for bit in range(_OFFSET_BITS):
        if command & 1 << bit:
            offset |= bytes_.next() << 8 * bit
    for bit in range(_SIZE_BITS):
        if command & 1 << _OFFSET_BITS + bit:
            size |= bytes_.next() << 8 * bit
    return offset, size or _WHOLE_COPY


def _read_sizes(bytes_: _DeltaReader, base: ObjectPlace) -> int:
    if bytes_.varint() != base.size:
        raise BadDelta("a delta belongs to another object")
    return bytes_.varint()


class _DeltaReader:
    """Reads a delta byte by byte."""

    def __init__(self, objects: GitObjects, delta: Delta) -> None:
        self._pieces = objects.chunks(delta.offset, delta.size)
        self._left = delta.size
        self._piece = b""
        self._at = 0

    @property
    def is_over(self) -> bool:
        return self._left == 0

    def next(self) -> int:
        return self.take(1)[0]

    def take(self, count: int) -> bytes:
        if count > self._left:
            raise BadDelta("a delta ends in the middle of a command")
        self._left -= count
        while len(self._piece) - self._at < count:
            self._piece, self._at = self._piece[self._at :] + next(self._pieces), 0
        taken = self._piece[self._at : self._at + count]
        self._at += count
        return taken

    def varint(self) -> int:
        number = shift = 0
        while True:
            byte = self.next()
            number |= (byte & ~_MORE) << shift
            shift += 7
            if not byte & _MORE:
                return number
