"""A partly downloaded large object: its file, and a record of the finished ranges."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from threading import Lock

from muster.render.storage.objects import FileObject


def part_path(notes: Path, remote: FileObject) -> Path:
    """Return the path of a partial file, whose name has a limited length for every key."""
    return notes / f"{hashlib.sha256(remote.path.encode('utf-8')).hexdigest()[:32]}.part"


class PartialFile:
    """Ranges are numbered from 0; all but the last one have `range_bytes`."""

    def __init__(self, notes: Path, remote: FileObject, range_bytes: int) -> None:
        """Continue an earlier download of the same content, or start from the beginning. Raises `OSError`."""
        self.part = part_path(notes, remote)
        self._note = self.part.with_suffix(".ranges")
        self._size, self._range_bytes = remote.stored.size, range_bytes
        self._lock = Lock()
        head = json.dumps([remote.stored.etag, remote.stored.size, range_bytes])
        current = self._read_parts(head)
        self._there = set() if current is None else current
        if current is None:
            self._note.unlink(missing_ok=True)
            # a sparse file of the final size, in which each range has its position
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
    def bytes_downloaded(self) -> int:
        """The number of bytes that have arrived."""
        return sum(end - start for start, end in map(self.bounds, self._there))

    def bounds(self, number: int) -> tuple[int, int]:
        """Return the beginning and the end of a range."""
        start = number * self._range_bytes
        return start, min(start + self._range_bytes, self._size)

    def missing(self) -> list[int]:
        """Return the ranges that have not arrived."""
        return [number for number in range(self.count) if number not in self._there]

    def record(self, number: int) -> bool:
        """Record that a range has arrived; return whether it was the last one. Raises `OSError`."""
        with self._lock, self._note.open("a", encoding="utf-8") as file:
            file.write(f"{number}\n")
            self._there.add(number)
            return len(self._there) == self.count

    def remove_record(self) -> None:
        """Remove the record of a complete object whose file has been moved. Raises `OSError`."""
        self._note.unlink()
