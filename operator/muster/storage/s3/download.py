"""Download S3 objects to a folder, except those that an earlier attempt downloaded. Blocks.

boto3's transfers restart a file after an interruption and keep no record of finished parts. This module
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
from muster.storage.s3.download_log import DownloadLog
from muster.storage.s3.partial_file import PartialFile, part_path
from muster.storage.safe_files import place_file

RANGE_BYTES = 32 * 2**20
"""The size of one request; an interruption loses at most this much."""

Progress = Callable[[int], object]
"""A callback that gets the number of newly arrived bytes."""


@dataclass(frozen=True)
class DownloadFolders:
    """`folder` gets the files; `notes`, on the same file system, gets partial files and records."""

    folder: Path
    notes: Path


def download_objects(
    bucket: Bucket, objects: Iterable[FileObject], into: DownloadFolders, sleep: Sleep, progress: Progress
) -> int:
    """Download the objects; return how many were missing locally. Raises `StorageError`."""
    try:
        into.folder.mkdir(parents=True, exist_ok=True)
        into.notes.mkdir(parents=True, exist_ok=True)
        with DownloadLog(into.notes / "fetched.jsonl") as fetched:
            missing = [remote for remote in objects if not fetched.has(remote, into.folder)]
            run_concurrently(_Transfer(bucket, into, fetched, sleep, progress).steps(missing))
    except OSError as error:
        raise StorageError(FOLDER_UNUSABLE, f"{bucket.field}: the data can't be written: {error}") from None
    return len(missing)


@dataclass(frozen=True)
class _Transfer:
    bucket: Bucket
    into: DownloadFolders
    fetched: DownloadLog
    sleep: Sleep
    progress: Progress

    def steps(self, objects: Iterable[FileObject]) -> Iterator[Callable[[], None]]:
        """Yield the transfers of at most `RANGE_BYTES`, in any order."""
        for remote in objects:
            if remote.stored.size <= RANGE_BYTES:
                yield partial(self._whole, remote)
                continue
            partial_file = PartialFile(self.into.notes, remote, RANGE_BYTES)
            self.progress(partial_file.bytes_downloaded)
            missing = partial_file.missing()
            for number in missing:
                yield partial(self._range, remote, partial_file, number)
            if not missing:
                yield partial(self._finish, remote, partial_file)

    def _whole(self, remote: FileObject) -> None:
        part = part_path(self.into.notes, remote)
        self._read(remote, part, 0, remote.stored.size, os.O_TRUNC)
        self._place(remote, part)

    def _range(self, remote: FileObject, partial_file: PartialFile, number: int) -> None:
        start, end = partial_file.bounds(number)
        self._read(remote, partial_file.part, start, end, 0)
        if partial_file.record(number):
            self._finish(remote, partial_file)

    def _finish(self, remote: FileObject, partial_file: PartialFile) -> None:
        self._place(remote, partial_file.part)
        partial_file.remove_record()

    def _read(self, remote: FileObject, part: Path, start: int, end: int, flags: int) -> None:
        def attempt() -> None:
            position = start
            descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | flags, 0o666)

            def write(piece: bytes) -> None:
                nonlocal position
                os.pwrite(descriptor, piece, position)
                position += len(piece)

            try:
                if end > start:
                    self.bucket.read(remote.stored, start, end, write)
                if not flags:
                    # after a crash, the record of a range must not exist without its data
                    os.fdatasync(descriptor)
            finally:
                os.close(descriptor)
            if position != end:
                what = (
                    f"{position - start} of {end - start} bytes of s3://{self.bucket.name}/{remote.stored.key} arrived"
                )
                raise StorageError(S3_UNREACHABLE, f"{self.bucket.field}: {what}", may_pass=True)
            self.progress(end - start)

        retry(attempt, self.sleep)

    def _place(self, remote: FileObject, part: Path) -> None:
        size = part.stat().st_size
        if size != remote.stored.size:
            sizes = (
                f"s3://{self.bucket.name}/{remote.stored.key} has {remote.stored.size} bytes, and {size} were written"
            )
            raise StorageError(FOLDER_UNUSABLE, f"{self.bucket.field}: {sizes}")
        place_file(part, self.into.folder, remote.path)
        self.fetched.add(remote)
