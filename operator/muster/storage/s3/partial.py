"""A large object that is partly downloaded: its file, and a record of the ranges that arrived."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from threading import Lock

from muster.render.storage.objects import FileObject


def part_path(notes: Path, one: FileObject) -> Path:
    """The path of a partial file: its name has a bounded length, whatever the key is."""
    return notes / f"{hashlib.sha256(one.path.encode('utf-8')).hexdigest()[:32]}.part"


class Partial:
    """Ranges are numbered from 0; all but the last one have `range_bytes`."""

    def __init__(self, notes: Path, one: FileObject, range_bytes: int) -> None:
        """Continue with the ranges of the same content, or start from the beginning. Raises `OSError`."""
        self.part = part_path(notes, one)
        self._note = self.part.with_suffix(".ranges")
        self._size, self._range_bytes = one.stored.size, range_bytes
        self._lock = Lock()
        head = json.dumps([one.stored.etag, one.stored.size, range_bytes])
        current = self._read_parts(head)
        self._there = set() if current is None else current
        if current is None:
            self._note.unlink(missing_ok=True)
            # a sparse file of the final size: each range has its position
            with self.part.open("wb") as file:
                os.truncate(file.fileno(), self._size)
            self._note.write_text(f"{head}\n", encoding="utf-8")

    def _read_parts(self, head: str) -> set[int] | None:
        if not self._note.exists() or not self.part.exists() or self.part.stat().st_size != self._size:
            return None
        lines = self._note.read_text(encoding="utf-8", errors="replace").split("\n")
        if lines[0] != head:
            return None
        # the last line may be truncated: 1 instead of 12
        return {int(line) for line in lines[1:-1] if line.isdigit() and int(line) < self.count}

    @property
    def count(self) -> int:
        """The number of ranges."""
        return -(-self._size // self._range_bytes)

    @property
    def bytes_there(self) -> int:
        """The number of bytes that have arrived."""
        return sum(end - start for start, end in map(self.bounds, self._there))

    def bounds(self, number: int) -> tuple[int, int]:
        """The beginning and the end of a range."""
        start = number * self._range_bytes
        return start, min(start + self._range_bytes, self._size)

    def missing(self) -> list[int]:
        """The ranges that have not arrived."""
        return [number for number in range(self.count) if number not in self._there]

    def note(self, number: int) -> bool:
        """Record that a range has arrived; return whether it was the last one. Raises `OSError`."""
        with self._lock, self._note.open("a", encoding="utf-8") as file:
            file.write(f"{number}\n")
            self._there.add(number)
            return len(self._there) == self.count

    def forget(self) -> None:
        """Remove the record: the object is complete, and its file has been moved. Raises `OSError`."""
        self._note.unlink()
