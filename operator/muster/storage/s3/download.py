"""Download objects of S3 to a folder, without those that an earlier attempt downloaded. Blocks.

boto3's transfers restart a file after an interruption and remember nothing after the process ends. This module
downloads large objects in ranges, and records finished ranges beside the file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from muster.render.storage.errors import FOLDER_UNUSABLE, S3_UNREACHABLE, StorageError
from muster.render.storage.objects import FileObject
from muster.storage.retry import Sleep, retry
from muster.storage.s3.bucket import Bucket
from muster.storage.s3.concurrent_steps import run_concurrently
from muster.storage.s3.fetched import Fetched
from muster.storage.s3.partial import Partial, part_path
from muster.storage.safe_files import place_file

RANGE_BYTES = 32 * 2**20
"""The size of one request, and the most that an interruption loses."""

Progress = Callable[[int], object]
"""Called with each number of bytes that arrived."""


@dataclass(frozen=True)
class Into:
    """`folder` is for the files, `notes`, on the same file system, for partial files and records."""

    folder: Path
    notes: Path


def fetch(bucket: Bucket, objects: Iterable[FileObject], into: Into, sleep: Sleep, progress: Progress) -> int:
    """Download the objects; return how many were missing locally. Raises `StorageError`."""
    try:
        into.folder.mkdir(parents=True, exist_ok=True)
        into.notes.mkdir(parents=True, exist_ok=True)
        with Fetched(into.notes / "fetched.jsonl") as fetched:
            missing = [one for one in objects if not fetched.has(one, into.folder)]
            run_concurrently(_Transfer(bucket, into, fetched, sleep, progress).steps(missing))
    except OSError as error:
        raise StorageError(FOLDER_UNUSABLE, f"{bucket.field}: the data can't be written: {error}") from None
    return len(missing)


@dataclass(frozen=True)
class _Transfer:
    bucket: Bucket
    into: Into
    fetched: Fetched
    sleep: Sleep
    progress: Progress

    def steps(self, objects: Iterable[FileObject]) -> Iterator[Callable[[], None]]:
        """Yield the transfers of at most `RANGE_BYTES`, in any order."""
        for one in objects:
            if one.stored.size <= RANGE_BYTES:
                yield partial(self._whole, one)
                continue
            there = Partial(self.into.notes, one, RANGE_BYTES)
            self.progress(there.bytes_there)
            missing = there.missing()
            for number in missing:
                yield partial(self._range, one, there, number)
            if not missing:
                yield partial(self._finish, one, there)

    def _whole(self, one: FileObject) -> None:
        part = part_path(self.into.notes, one)
        self._read(one, part, 0, one.stored.size, os.O_TRUNC)
        self._place(one, part)

    def _range(self, one: FileObject, there: Partial, number: int) -> None:
        start, end = there.bounds(number)
        self._read(one, there.part, start, end, 0)
        if there.note(number):
            self._finish(one, there)

    def _finish(self, one: FileObject, there: Partial) -> None:
        self._place(one, there.part)
        there.forget()

    def _read(self, one: FileObject, part: Path, start: int, end: int, flags: int) -> None:
        def attempt() -> None:
            position = start
            descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | flags, 0o666)

            def write(piece: bytes) -> None:
                nonlocal position
                os.pwrite(descriptor, piece, position)
                position += len(piece)

            try:
                if end > start:
                    self.bucket.read(one.stored, start, end, write)
                if not flags:
                    # after a crash, the record of a range must not exist without its data
                    os.fdatasync(descriptor)
            finally:
                os.close(descriptor)
            if position != end:
                what = f"{position - start} of {end - start} bytes of s3://{self.bucket.name}/{one.stored.key} arrived"
                raise StorageError(S3_UNREACHABLE, f"{self.bucket.field}: {what}", may_pass=True)
            self.progress(end - start)

        retry(attempt, self.sleep)

    def _place(self, one: FileObject, part: Path) -> None:
        size = part.stat().st_size
        if size != one.stored.size:
            what = f"s3://{self.bucket.name}/{one.stored.key} has {one.stored.size} bytes, and {size} were written"
            raise StorageError(FOLDER_UNUSABLE, f"{self.bucket.field}: {what}")
        place_file(part, self.into.folder, one.path)
        self.fetched.add(one)
