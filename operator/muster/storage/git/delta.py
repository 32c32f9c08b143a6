"""Objects that a pack tells of by what is other in them than in another one.

Format: git's documentation, "gitformat-pack", "Deltified representation". Done here and not by dulwich, which holds an
object, what it is made of and the way between in memory, and believes a delta that says how large its result is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from muster.storage.git.objects import PIECE, GitObjects, ObjectPlace

_COPY = 0x80
_MORE = 0x80
_OFFSET_BITS, _SIZE_BITS = 4, 3
_WHOLE_COPY = 0x10000


class BadDelta(ValueError):
    """What is no delta, or one of another object."""


@dataclass(frozen=True, slots=True)
class Delta:
    """Where a delta is in the file of the objects."""

    offset: int
    size: int


def result_size(objects: GitObjects, delta: Delta, base: ObjectPlace) -> int:
    """How large the result says that it is, in bytes. Raises `BadDelta`."""
    return _sizes(_Bytes(objects, delta), base)


def applied(objects: GitObjects, delta: Delta, base: ObjectPlace) -> Iterator[bytes]:
    """What the delta makes of `base`, piece by piece. Raises `BadDelta`."""
    bytes_ = _Bytes(objects, delta)
    left = _sizes(bytes_, base)
    gathered = bytearray()
    while not bytes_.is_over:
        command = bytes_.next()
        if command & _COPY:
            offset, size = _copied(bytes_, command)
            if offset + size > base.size or size > left:
                raise BadDelta("a delta copies more than there is")
            left -= size
            for piece in objects.pieces(base.offset + offset, size):
                gathered += piece
                if len(gathered) >= PIECE:
                    yield bytes(gathered)
                    gathered.clear()
        elif command:
            gathered += bytes_.take(command)
            left -= command
            if left < 0:
                raise BadDelta("a delta makes more than it says")
        else:
            raise BadDelta("a delta has a command that means nothing")
    yield bytes(gathered)


def _copied(bytes_: _Bytes, command: int) -> tuple[int, int]:
    offset = size = 0
    for bit in range(_OFFSET_BITS):
        if command & 1 << bit:
            offset |= bytes_.next() << 8 * bit
    for bit in range(_SIZE_BITS):
        if command & 1 << _OFFSET_BITS + bit:
            size |= bytes_.next() << 8 * bit
    return offset, size or _WHOLE_COPY


def _sizes(bytes_: _Bytes, base: ObjectPlace) -> int:
    if bytes_.varint() != base.size:
        raise BadDelta("a delta is of another object")
    return bytes_.varint()


class _Bytes:
    """A delta's bytes, one after the other."""

    def __init__(self, objects: GitObjects, delta: Delta) -> None:
        self._pieces = objects.pieces(delta.offset, delta.size)
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
