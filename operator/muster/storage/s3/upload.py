"""Upload a folder's files to S3. Blocks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from muster.api.document import quote
from muster.api.s3_uri import S3Uri
from muster.render.storage.errors import FOLDER_UNUSABLE, S3_ACCESS_DENIED, S3_REFUSED, StorageError
from muster.storage.retry import Sleep, retry
from muster.storage.s3.bucket import Bucket
from muster.storage.s3.concurrent_steps import run_concurrently
from muster.storage.safe_files import pin_file

MAX_KEY_BYTES = 1024
"""Amazon S3 User Guide, "Naming Amazon S3 objects"."""

_SINGLE_FILE_REASONS = frozenset((S3_ACCESS_DENIED, S3_REFUSED, FOLDER_UNUSABLE))
"""Errors that concern only one file."""


@dataclass(frozen=True)
class LocalFile:
    """A file by its path below a folder. Times are nanoseconds of the machine's clock."""

    path: str
    size: int
    changed_ns: int


def list_files(folder: Path) -> Iterator[LocalFile]:
    """Yield every file below `folder`, and follow links within it; skip files that are deleted meanwhile.

    Links to other folders are skipped, because their targets are not the ranks' output.
    """
    root = folder.resolve()
    for folder_path, folders, names in os.walk(root):
        folders.sort()
        for name in sorted(names):
            result = describe_file(root, str(Path(folder_path, name).relative_to(root)))
            if result is not None:
                yield result


def describe_file(root: Path, path: str) -> LocalFile | None:
    """Describe the file at `path` below the resolved folder `root`, as `list_files` does; None if it is missing."""
    file = root / path
    try:
        if not file.resolve(strict=True).is_relative_to(root) or not file.is_file():
            return None
        stat = file.stat()
    except (OSError, RuntimeError):
        return None  # pathlib raises RuntimeError for a cycle of links
    return LocalFile(path, stat.st_size, stat.st_mtime_ns)


def upload(bucket: Bucket, folder: Path, files: Iterable[LocalFile], uri: S3Uri, sleep: Sleep) -> None:
    """Upload these files below `uri`. Raises `StorageError`."""
    run_concurrently(partial(_upload_file, bucket, folder, file, uri, sleep) for file in files)


def upload_possible(bucket: Bucket, folder: Path, files: Iterable[LocalFile], uri: S3Uri, sleep: Sleep) -> None:
    """Like `upload`, but continue after a file that can't be uploaded, and raise its error at the end."""
    problems: list[StorageError] = []

    def one(file: LocalFile) -> None:
        try:
            _upload_file(bucket, folder, file, uri, sleep)
        except StorageError as problem:
            if problem.reason not in _SINGLE_FILE_REASONS:
                raise
            problems.append(problem)

    run_concurrently(partial(one, file) for file in files)
    if problems:
        other_failures = (
            f"; {len(problems) - 1} more of these files can't be uploaded either" if len(problems) > 1 else ""
        )
        raise StorageError(problems[0].reason, problems[0].message + other_failures)


def key_of(uri: S3Uri, path: str, field: str) -> str:
    """Return the key of a file below `uri`. Raises `StorageError` for a name that S3 does not allow."""
    try:
        key = uri.below(path).key
        if len(key.encode("utf-8")) <= MAX_KEY_BYTES:
            return key
        why = f"its key would have more than {MAX_KEY_BYTES} bytes"
    except UnicodeEncodeError:
        why = "its name is not UTF-8"
    raise StorageError(FOLDER_UNUSABLE, f"{field}: {quote(ascii(path))} can't be uploaded to S3: {why}")


def _upload_file(bucket: Bucket, folder: Path, file: LocalFile, uri: S3Uri, sleep: Sleep) -> None:
    key = key_of(uri, file.path, bucket.field)
    try:
        # after the listing, the file may have been replaced by a link
        with pin_file(folder, file.path) as pinned:
            retry(lambda: bucket.upload(key, pinned), sleep)
    except FileNotFoundError:
        return  # the ranks have removed it meanwhile
    except OSError as error:
        raise StorageError(
            FOLDER_UNUSABLE, f"{bucket.field}: {quote(file.path)} can't be read: {error.strerror}"
        ) from None
