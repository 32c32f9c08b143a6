"""The partial file of a large object, and a record of the ranges that it contains."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from threading import Lock

from muster.render.storage.objects import FileObject


def make_part_path(records: Path, file_object: FileObject) -> Path:
    """Return the path of an object's partial file. Its name has the same length for every key."""
    return records / f"{hashlib.sha256(file_object.path.encode('utf-8')).hexdigest()[:32]}.part"


class PartialFile:
    """The partial file of an object. Its ranges count from 0, and all but the last have `range_bytes` bytes."""

    def __init__(self, records: Path, file_object: FileObject, range_bytes: int) -> None:
        """Continue an earlier download of the same object, or start from the beginning. Raises `OSError`."""
        self.part = make_part_path(records, file_object)
        self._record_file = self.part.with_suffix(".ranges")
        self._size, self._range_bytes = file_object.s3_object.size, range_bytes
        self._lock = Lock()
        header = json.dumps([file_object.s3_object.etag, file_object.s3_object.size, range_bytes])
        complete_ranges = self._read_complete_ranges(header)
        self._complete_ranges = set() if complete_ranges is None else complete_ranges
        if complete_ranges is None:
            self._record_file.unlink(missing_ok=True)
            # Create a sparse file of the final size, so that each range has its position.
            with self.part.open("wb") as file:
                os.truncate(file.fileno(), self._size)
            self._record_file.write_text(f"{header}\n", encoding="utf-8")

    def _read_complete_ranges(self, header: str) -> set[int] | None:
        if not self._record_file.exists() or not self.part.exists() or self.part.stat().st_size != self._size:
            return None
        lines = self._record_file.read_text(encoding="utf-8", errors="replace").split("\n")
        if lines[0] != header:
            return None
        # The last line may be truncated, such as 1 instead of 12.
        return {int(line) for line in lines[1:-1] if line.isdigit() and int(line) < self.range_count}

    @property
    def range_count(self) -> int:
        """The number of ranges."""
        return -(-self._size // self._range_bytes)

    @property
    def bytes_downloaded(self) -> int:
        """The number of bytes that have arrived."""
        return sum(end - start for start, end in map(self.get_bounds, self._complete_ranges))

    def get_bounds(self, number: int) -> tuple[int, int]:
        """Return the beginning and the end of a range."""
        start = number * self._range_bytes
        return start, min(start + self._range_bytes, self._size)

    def list_missing_ranges(self) -> list[int]:
        """Return the numbers of the ranges that have not arrived."""
        return [number for number in range(self.range_count) if number not in self._complete_ranges]

    def record_range(self, number: int) -> bool:
        """Record that a range has arrived; return whether all ranges have arrived. Raises `OSError`."""
        with self._lock, self._record_file.open("a", encoding="utf-8") as file:
            file.write(f"{number}\n")
            self._complete_ranges.add(number)
            return len(self._complete_ranges) == self.range_count

    def remove_record(self) -> None:
        """Remove the record of the ranges after the download. Raises `OSError`."""
        self._record_file.unlink()
