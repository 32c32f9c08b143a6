"""Resolve objects that a git pack stores as deltas of other objects.

The format is in git's documentation, "gitformat-pack", "Deltified representation". dulwich would load the object, its
base and the delta into memory, and would trust the result size in the delta.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from muster.storage.git.objects import CHUNK_BYTES, GitObjects, ObjectLocation

_COPY_BIT = 0x80
_CONTINUATION_BIT = 0x80
_OFFSET_BITS, _SIZE_BITS = 4, 3
_DEFAULT_COPY_BYTES = 0x10000


class BadDelta(ValueError):
    """The data is not a delta of this object."""


@dataclass(frozen=True, slots=True)
class Delta:
    """A delta's position in the file of objects."""

    offset: int
    size: int


def read_result_size(objects: GitObjects, delta: Delta, base: ObjectLocation) -> int:
    """Return the size of the result in bytes, as the delta states it. Raises `BadDelta`."""
    return _read_sizes(_DeltaReader(objects, delta), base)


def apply_delta(objects: GitObjects, delta: Delta, base: ObjectLocation) -> Iterator[bytes]:
    """Yield the chunks of the result of applying the delta to `base`. Raises `BadDelta`."""
    reader = _DeltaReader(objects, delta)
    remaining = _read_sizes(reader, base)
    result = bytearray()
    while not reader.is_over:
        command = reader.read_byte()
        if command & _COPY_BIT:
            offset, size = _read_copy(reader, command)
            if offset + size > base.size or size > remaining:
                raise BadDelta("a delta copies more data than its base has")
            remaining -= size
            for chunk in objects.read_chunks(base.offset + offset, size):
                result += chunk
                if len(result) >= CHUNK_BYTES:
                    yield bytes(result)
                    result.clear()
        elif command:
            result += reader.read(command)
            remaining -= command
            if remaining < 0:
                raise BadDelta("a delta's result is larger than the delta states")
        else:
            raise BadDelta("a delta has an unknown command")
    yield bytes(result)


def _read_copy(reader: _DeltaReader, command: int) -> tuple[int, int]:
    offset = size = 0
    for bit in range(_OFFSET_BITS):
        if command & 1 << bit:
            offset |= reader.read_byte() << 8 * bit
    for bit in range(_SIZE_BITS):
        if command & 1 << _OFFSET_BITS + bit:
            size |= reader.read_byte() << 8 * bit
    return offset, size or _DEFAULT_COPY_BYTES


def _read_sizes(reader: _DeltaReader, base: ObjectLocation) -> int:
    if reader.read_varint() != base.size:
        raise BadDelta("a delta belongs to another object")
    return reader.read_varint()


class _DeltaReader:
    """Reads a delta byte by byte."""

    def __init__(self, objects: GitObjects, delta: Delta) -> None:
        self._chunks = objects.read_chunks(delta.offset, delta.size)
        self._remaining_bytes = delta.size
        self._chunk = b""
        self._position = 0

    @property
    def is_over(self) -> bool:
        return self._remaining_bytes == 0

    def read_byte(self) -> int:
        return self.read(1)[0]

    def read(self, count: int) -> bytes:
        if count > self._remaining_bytes:
            raise BadDelta("a delta ends in the middle of a command")
        self._remaining_bytes -= count
        while len(self._chunk) - self._position < count:
            self._chunk, self._position = self._chunk[self._position :] + next(self._chunks), 0
        data = self._chunk[self._position : self._position + count]
        self._position += count
        return data

    def read_varint(self) -> int:
        number = shift = 0
        while True:
            byte = self.read_byte()
            number |= (byte & ~_CONTINUATION_BIT) << shift
            shift += 7
            if not byte & _CONTINUATION_BIT:
                return number
