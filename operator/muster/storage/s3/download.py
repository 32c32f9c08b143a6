"""Download S3 objects to a folder, except objects that an earlier attempt downloaded. Blocks the thread.

boto3's transfers download a file from the beginning after an interruption. This module
downloads large objects in ranges, and records the complete ranges of each file.
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
from muster.storage.safe_files import move_into

RANGE_BYTES = 32 * 2**20
"""The size of one request, and the most that an interruption loses of a file."""

Progress = Callable[[int], object]
"""A callback that gets the number of bytes that have arrived since its last call."""


@dataclass(frozen=True)
class DownloadFolders:
    """`records`, on the same file system as `folder`, contains partial files and the records of downloads."""

    folder: Path
    records: Path


def download_objects(
    bucket: Bucket, objects: Iterable[FileObject], download_folders: DownloadFolders, sleep: Sleep, progress: Progress
) -> int:
    """Download the objects; return the number of objects that were missing in the folder. Raises `StorageError`."""
    try:
        download_folders.folder.mkdir(parents=True, exist_ok=True)
        download_folders.records.mkdir(parents=True, exist_ok=True)
        with DownloadLog(download_folders.records / "fetched.jsonl") as download_log:
            missing = [remote for remote in objects if not download_log.has(remote, download_folders.folder)]
            run_concurrently(_Transfer(bucket, download_folders, download_log, sleep, progress).steps(missing))
    except OSError as error:
        raise StorageError(FOLDER_UNUSABLE, f"{bucket.field}: the data can't be written: {error}") from None
    return len(missing)


@dataclass(frozen=True)
class _Transfer:
    bucket: Bucket
    download_folders: DownloadFolders
    download_log: DownloadLog
    sleep: Sleep
    progress: Progress

    def steps(self, objects: Iterable[FileObject]) -> Iterator[Callable[[], None]]:
        """Yield the transfers of at most `RANGE_BYTES`, in any order."""
        for remote in objects:
            if remote.stored.size <= RANGE_BYTES:
                yield partial(self._download_whole, remote)
                continue
            partial_file = PartialFile(self.download_folders.records, remote, RANGE_BYTES)
            self.progress(partial_file.bytes_downloaded)
            missing = partial_file.missing()
            for number in missing:
                yield partial(self._download_range, remote, partial_file, number)
            if not missing:
                yield partial(self._finish, remote, partial_file)

    def _download_whole(self, remote: FileObject) -> None:
        part = part_path(self.download_folders.records, remote)
        self._read(remote, part, 0, remote.stored.size, os.O_TRUNC)
        self._move_into_place(remote, part)

    def _download_range(self, remote: FileObject, partial_file: PartialFile, number: int) -> None:
        start, end = partial_file.bounds(number)
        self._read(remote, partial_file.part, start, end, 0)
        if partial_file.record(number):
            self._finish(remote, partial_file)

    def _finish(self, remote: FileObject, partial_file: PartialFile) -> None:
        self._move_into_place(remote, partial_file.part)
        partial_file.remove_record()

    def _read(self, remote: FileObject, part: Path, start: int, end: int, flags: int) -> None:
        def attempt() -> None:
            position = start
            descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | flags, 0o666)

            def write(chunk: bytes) -> None:
                nonlocal position
                os.pwrite(descriptor, chunk, position)
                position += len(chunk)

            try:
                if end > start:
                    self.bucket.read(remote.stored, start, end, write)
                if not flags:
                    # After a crash, the record of a range must not exist without the range's data.
                    os.fdatasync(descriptor)
            finally:
                os.close(descriptor)
            if position != end:
                message = (
                    f"{position - start} of {end - start} bytes of s3://{self.bucket.name}/{remote.stored.key} arrived"
                )
                raise StorageError(S3_UNREACHABLE, f"{self.bucket.field}: {message}", is_retryable=True)
            self.progress(end - start)

        retry(attempt, self.sleep)

    def _move_into_place(self, remote: FileObject, part: Path) -> None:
        size = part.stat().st_size
        if size != remote.stored.size:
            message = (
                f"s3://{self.bucket.name}/{remote.stored.key} has {remote.stored.size} bytes, and {size} were written"
            )
            raise StorageError(FOLDER_UNUSABLE, f"{self.bucket.field}: {message}")
        move_into(part, self.download_folders.folder, remote.path)
        self.download_log.add(remote)
