"""Unpack a git pack into a file. The unpacked size has a limit, because a kilobyte may expand to a terabyte.

The format is in git's documentation, "gitformat-pack".
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, TypeAlias

from dulwich.objects import ObjectID

from muster.storage.git.delta import Delta, apply_delta, read_result_size
from muster.storage.git.objects import CHUNK_BYTES, GitObjects

_CHUNK_BYTES = 2**14
"""The size of each read. It is small, because the reader copies the remaining bytes after each object."""

_HEADER_BYTES = 12
_NAME_BYTES = 20
_CONTINUATION_BIT = 0x80
_OFS_DELTA, _REF_DELTA = 6, 7
_OBJECT_KINDS = (1, 2, 3, 4)

_Base: TypeAlias = int | ObjectID
"""The base of a delta: the position of an entry in the pack, or an object's name."""


class TooLarge(Exception):
    """The pack has too many objects, or too much data."""


def unpack(pack: BinaryIO, objects: GitObjects, max_bytes: int, max_objects: int) -> None:
    """Add a pack's objects to `objects`. Raises `TooLarge`, and `ValueError` for invalid data."""
    pack.seek(0)
    header = pack.read(_HEADER_BYTES)
    if len(header) < _HEADER_BYTES or header[:4] != b"PACK":
        raise ValueError("it is not a git pack")
    count = int.from_bytes(header[8:], "big")
    if count > max_objects:
        raise TooLarge
    unpacker = _Unpacker(_Reader(pack), objects, max_bytes)
    for _ in range(count):
        unpacker.read_entry()
    unpacker.resolve()


class _Unpacker:
    def __init__(self, reader: _Reader, objects: GitObjects, max_bytes: int) -> None:
        self._reader = reader
        self._objects = objects
        self._remaining_bytes = max_bytes
        self._names: dict[int, ObjectID] = {}
        self._waiting_deltas: defaultdict[_Base, list[_PendingDelta]] = defaultdict(list)

    def read_entry(self) -> None:
        """Store the next entry, either a whole object or a delta that `resolve` applies."""
        reader = self._reader
        entry_offset = reader.position
        kind, size = _read_kind_and_size(reader)
        if kind in _OBJECT_KINDS:
            self._names[entry_offset] = self._objects.add(kind, size, self._decompress(size))
            return
        base: _Base
        if kind == _OFS_DELTA:
            base = entry_offset - _read_base_distance(reader)
        elif kind == _REF_DELTA:
            base = ObjectID(reader.read(_NAME_BYTES).hex().encode("ascii"))
        else:
            raise ValueError("the pack has an entry of an unknown kind")
        delta = Delta(*self._objects.store(self._decompress(size)))
        self._waiting_deltas[base].append(_PendingDelta(entry_offset, delta))

    def resolve(self) -> None:
        """Apply all deltas."""
        pending = list(self._names.items())
        while pending:
            offset, name = pending.pop()
            base = self._objects.find(name)
            if base is None:
                raise KeyError(name)
            for delta in (*self._waiting_deltas.pop(offset, ()), *self._waiting_deltas.pop(name, ())):
                size = read_result_size(self._objects, delta.delta, base)
                self._count_bytes(size)
                pending.append(
                    (
                        delta.entry_offset,
                        self._objects.add(base.kind, size, apply_delta(self._objects, delta.delta, base)),
                    )
                )
        if self._waiting_deltas:
            raise ValueError("the pack has a delta without its base")

    def _decompress(self, size: int) -> Iterator[bytes]:
        """Decompress the next stream. `size` is its unpacked size, as the pack states it."""
        self._count_bytes(size)
        stream, data = zlib.decompressobj(), b""
        while not stream.eof:
            data = data or self._reader.read_chunk()
            try:
                out = stream.decompress(data, CHUNK_BYTES)
            except zlib.error as error:
                raise ValueError(f"the pack can't be unpacked: {error}") from None
            data = stream.unconsumed_tail
            size -= len(out)
            if size < 0:
                raise TooLarge
            yield out
        self._reader.unread(stream.unused_data)

    def _count_bytes(self, size: int) -> None:
        self._remaining_bytes -= size
        if self._remaining_bytes < 0:
            raise TooLarge


@dataclass(frozen=True, slots=True)
class _PendingDelta:
    """A delta whose base is unknown, and the position of its entry in the pack."""

    entry_offset: int
    delta: Delta


def _read_kind_and_size(reader: _Reader) -> tuple[int, int]:
    byte = reader.read_byte()
    kind, size, shift = byte >> 4 & 7, byte & 15, 4
    while byte & _CONTINUATION_BIT:
        byte = reader.read_byte()
        size |= (byte & ~_CONTINUATION_BIT) << shift
        shift += 7
    return kind, size


def _read_base_distance(reader: _Reader) -> int:
    """Read the distance to the entry of a delta's base."""
    byte = reader.read_byte()
    number = byte & ~_CONTINUATION_BIT
    while byte & _CONTINUATION_BIT:
        byte = reader.read_byte()
        number = (number + 1 << 7) | byte & ~_CONTINUATION_BIT
    return number


class _Reader:
    """Reads a file, and accepts data back. `position` is the position of the next byte."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._chunk = b""
        self._position = 0

    @property
    def position(self) -> int:
        return self._file.tell() - len(self._chunk) + self._position

    def read_chunk(self) -> bytes:
        chunk = self._chunk[self._position :]
        self._chunk, self._position = b"", 0
        return chunk or self._read_chunk()

    def read(self, count: int) -> bytes:
        while len(self._chunk) - self._position < count:
            self.unread(self._chunk[self._position :] + self._read_chunk())
        data = self._chunk[self._position : self._position + count]
        self._position += count
        return data

    def read_byte(self) -> int:
        return self.read(1)[0]

    def unread(self, data: bytes) -> None:
        self._chunk, self._position = data, 0

    def _read_chunk(self) -> bytes:
        chunk = self._file.read(_CHUNK_BYTES)
        if not chunk:
            raise ValueError("the pack ends in the middle of an object")
        return chunk
