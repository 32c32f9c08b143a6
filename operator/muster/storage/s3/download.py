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
from muster.storage.s3.partial_file import PartialFile, make_part_path
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
            missing = [
                file_object
                for file_object in objects
                if not download_log.contains(file_object, download_folders.folder)
            ]
            run_concurrently(_Transfer(bucket, download_folders, download_log, sleep, progress).make_steps(missing))
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

    def make_steps(self, objects: Iterable[FileObject]) -> Iterator[Callable[[], None]]:
        """Yield functions that transfer at most `RANGE_BYTES` each. They may run in any order."""
        for file_object in objects:
            if file_object.s3_object.size <= RANGE_BYTES:
                yield partial(self._download_whole, file_object)
                continue
            partial_file = PartialFile(self.download_folders.records, file_object, RANGE_BYTES)
            self.progress(partial_file.bytes_downloaded)
            missing = partial_file.list_missing_ranges()
            for number in missing:
                yield partial(self._download_range, file_object, partial_file, number)
            if not missing:
                yield partial(self._finish_file, file_object, partial_file)

    def _download_whole(self, file_object: FileObject) -> None:
        part = make_part_path(self.download_folders.records, file_object)
        self._read(file_object, part, 0, file_object.s3_object.size, os.O_TRUNC)
        self._move_into_place(file_object, part)

    def _download_range(self, file_object: FileObject, partial_file: PartialFile, number: int) -> None:
        start, end = partial_file.get_bounds(number)
        self._read(file_object, partial_file.part, start, end, 0)
        if partial_file.record_range(number):
            self._finish_file(file_object, partial_file)

    def _finish_file(self, file_object: FileObject, partial_file: PartialFile) -> None:
        self._move_into_place(file_object, partial_file.part)
        partial_file.remove_record()

    def _read(self, file_object: FileObject, part: Path, start: int, end: int, flags: int) -> None:
        def attempt() -> None:
            position = start
            descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | flags, 0o666)

            def write(chunk: bytes) -> None:
                nonlocal position
                os.pwrite(descriptor, chunk, position)
                position += len(chunk)

            try:
                if end > start:
                    self.bucket.read(file_object.s3_object, start, end, write)
                if not flags:
                    # After a crash, the record of a range must not exist without the range's data.
                    os.fdatasync(descriptor)
            finally:
                os.close(descriptor)
            if position != end:
                uri = f"s3://{self.bucket.name}/{file_object.s3_object.key}"
                message = f"{position - start} of {end - start} bytes of {uri} arrived"
                raise StorageError(S3_UNREACHABLE, f"{self.bucket.field}: {message}", is_retryable=True)
            self.progress(end - start)

        retry(attempt, self.sleep)

    def _move_into_place(self, file_object: FileObject, part: Path) -> None:
        size, s3_object = part.stat().st_size, file_object.s3_object
        if size != s3_object.size:
            message = f"s3://{self.bucket.name}/{s3_object.key} has {s3_object.size} bytes, and {size} were written"
            raise StorageError(FOLDER_UNUSABLE, f"{self.bucket.field}: {message}")
        move_into(part, self.download_folders.folder, file_object.path)
        self.download_log.add(file_object)
