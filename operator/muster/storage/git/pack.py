"""Unpack a git pack into a file, with a limit for its unpacked size: a kilobyte may expand to a terabyte.

Format: git's documentation, "gitformat-pack".
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, TypeAlias

from dulwich.objects import ObjectID

from muster.storage.git.delta import Delta, apply_delta, result_size
from muster.storage.git.objects import CHUNK_BYTES, GitObjects

_CHUNK_BYTES = 2**14
"""Bytes for each read: after each object, the reader copies the remaining bytes."""

_HEAD_BYTES = 12
_NAME_BYTES = 20
_MORE = 0x80
_OFS_DELTA, _REF_DELTA = 6, 7
_WHOLE_KINDS = (1, 2, 3, 4)

_Base: TypeAlias = int | ObjectID
"""The base of a delta: the position of an entry in the pack, or an object's name."""


class TooLarge(Exception):
    """The pack has too many objects, or too much data."""


def unpack(pack: BinaryIO, objects: GitObjects, most_bytes: int, most_objects: int) -> None:
    """Add a pack's objects to `objects`. Raises `TooLarge`, and `ValueError` for invalid data."""
    pack.seek(0)
    head = pack.read(_HEAD_BYTES)
    if len(head) < _HEAD_BYTES or head[:4] != b"PACK":
        raise ValueError("it is not a git pack")
    count = int.from_bytes(head[8:], "big")
    if count > most_objects:
        raise TooLarge
    unpacking = _Unpacker(_Reader(pack), objects, most_bytes)
    for _ in range(count):
        unpacking.read_entry()
    unpacking.resolve()


class _Unpacker:
    def __init__(self, reader: _Reader, objects: GitObjects, most_bytes: int) -> None:
        self._reader = reader
        self._objects = objects
        self._left = most_bytes
        self._names: dict[int, ObjectID] = {}
        self._waiting: defaultdict[_Base, list[_PendingDelta]] = defaultdict(list)

    def read_entry(self) -> None:
        """Store the next entry, either a whole object or a delta that `resolve` applies."""
        reader = self._reader
        entry_offset = reader.at
        kind, size = _read_kind_and_size(reader)
        if kind in _WHOLE_KINDS:
            self._names[entry_offset] = self._objects.add(kind, size, self._inflated(size))
            return
        base: _Base
        if kind == _OFS_DELTA:
            base = entry_offset - _read_base_distance(reader)
        elif kind == _REF_DELTA:
            base = ObjectID(reader.take(_NAME_BYTES).hex().encode("ascii"))
        else:
            raise ValueError("the pack has an entry of an unknown kind")
        delta = Delta(*self._objects.store(self._inflated(size)))
        self._waiting[base].append(_PendingDelta(entry_offset, delta))

    def resolve(self) -> None:
        """Resolve all deltas."""
        ready = list(self._names.items())
        while ready:
            offset, name = ready.pop()
            base = self._objects.find(name)
            if base is None:
                raise KeyError(name)
            for delta in (*self._waiting.pop(offset, ()), *self._waiting.pop(name, ())):
                size = result_size(self._objects, delta.delta, base)
                self._take(size)
                ready.append(
                    (delta.at, self._objects.add(base.kind, size, apply_delta(self._objects, delta.delta, base)))
                )
        if self._waiting:
            raise ValueError("the pack has a delta without its base")

    def _inflated(self, size: int) -> Iterator[bytes]:
        """Decompress the next stream; `size` is its unpacked size according to the pack."""
        self._take(size)
        stream, data = zlib.decompressobj(), b""
        while not stream.eof:
            data = data or self._reader.piece()
            try:
                out = stream.decompress(data, CHUNK_BYTES)
            except zlib.error as error:
                raise ValueError(f"the pack can't be unpacked: {error}") from None
            data = stream.unconsumed_tail
            size -= len(out)
            if size < 0:
                raise TooLarge
            yield out
        self._reader.give_back(stream.unused_data)

    def _take(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise TooLarge


@dataclass(frozen=True, slots=True)
class _PendingDelta:
    """A delta whose base is unknown, and the position of its entry in the pack."""

    at: int
    delta: Delta


def _read_kind_and_size(reader: _Reader) -> tuple[int, int]:
    byte = reader.byte()
    kind, size, shift = byte >> 4 & 7, byte & 15, 4
    while byte & _MORE:
        byte = reader.byte()
        size |= (byte & ~_MORE) << shift
        shift += 7
    return kind, size


def _read_base_distance(reader: _Reader) -> int:
    """Read the distance to the entry of a delta's base."""
    byte = reader.byte()
    number = byte & ~_MORE
    while byte & _MORE:
        byte = reader.byte()
        number = (number + 1 << 7) | byte & ~_MORE
    return number


class _Reader:
    """Reads a file; data can be returned to it. `at` is the position of the next byte."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._piece = b""
        self._used = 0

    @property
    def at(self) -> int:
        return self._file.tell() - len(self._piece) + self._used

    def piece(self) -> bytes:
        piece = self._piece[self._used :]
        self._piece, self._used = b"", 0
        return piece or self._read()

    def take(self, count: int) -> bytes:
        while len(self._piece) - self._used < count:
            self.give_back(self._piece[self._used :] + self._read())
        taken = self._piece[self._used : self._used + count]
        self._used += count
        return taken

    def byte(self) -> int:
        return self.take(1)[0]

    def give_back(self, data: bytes) -> None:
        self._piece, self._used = data, 0

    def _read(self) -> bytes:
        piece = self._file.read(_CHUNK_BYTES)
        if not piece:
            raise ValueError("the pack ends in the middle of an object")
        return piece
