"""Upload a folder's files to S3. Blocks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from muster.api.document import quoted
from muster.api.s3_uri import S3Uri
from muster.render.storage.errors import FOLDER_UNUSABLE, S3_ACCESS_DENIED, S3_REFUSED, StorageError
from muster.storage.retry import Sleep, retry
from muster.storage.s3.bucket import Bucket
from muster.storage.s3.concurrent_steps import run_concurrently
from muster.storage.safe_files import held

MAX_KEY_BYTES = 1024
"""Amazon S3 User Guide, "Naming Amazon S3 objects"."""

_OF_ONE_FILE = frozenset((S3_ACCESS_DENIED, S3_REFUSED, FOLDER_UNUSABLE))
"""Reasons that concern one file only."""


@dataclass(frozen=True)
class LocalFile:
    """A file by its path below a folder. Times are nanoseconds of the machine's clock."""

    path: str
    size: int
    changed_ns: int


def files_of(folder: Path) -> Iterator[LocalFile]:
    """Find every file below `folder`, also through links that stay below it; files that vanish meanwhile are skipped.

    Links to other places are not followed: their targets are not the ranks' output.
    """
    root = folder.resolve()
    for place, folders, names in os.walk(root):
        folders.sort()
        for name in sorted(names):
            result = file_at(root, str(Path(place, name).relative_to(root)))
            if result is not None:
                yield result


def file_at(root: Path, path: str) -> LocalFile | None:
    """The file at `path` below `root`, which is resolved, as `files_of` would return it now."""
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
    run_concurrently(partial(_one, bucket, folder, file, uri, sleep) for file in files)


def upload_what_goes(bucket: Bucket, folder: Path, files: Iterable[LocalFile], uri: S3Uri, sleep: Sleep) -> None:
    """Like `upload`, but continue after a file that can't become an object, and raise its problem at the end."""
    left: list[StorageError] = []

    def one(file: LocalFile) -> None:
        try:
            _one(bucket, folder, file, uri, sleep)
        except StorageError as problem:
            if problem.reason not in _OF_ONE_FILE:
                raise
            left.append(problem)

    run_concurrently(partial(one, file) for file in files)
    if left:
        others = f"; {len(left) - 1} more of these files can't be uploaded either" if len(left) > 1 else ""
        raise StorageError(left[0].reason, left[0].message + others)


def key_of(uri: S3Uri, path: str, field: str) -> str:
    """The key of a file below `uri`. Raises `StorageError` for a name that S3 does not allow."""
    try:
        key = uri.below(path).key
        if len(key.encode("utf-8")) <= MAX_KEY_BYTES:
            return key
        why = f"its key would have more than {MAX_KEY_BYTES} bytes"
    except UnicodeEncodeError:
        why = "its name is not UTF-8"
    raise StorageError(FOLDER_UNUSABLE, f"{field}: {quoted(ascii(path))} can't be uploaded to S3: {why}")


def _one(bucket: Bucket, folder: Path, file: LocalFile, uri: S3Uri, sleep: Sleep) -> None:
    key = key_of(uri, file.path, bucket.field)
    try:
        # since it was listed, the file may have become a link to elsewhere
        with held(folder, file.path) as there:
            retry(lambda: bucket.upload(key, there), sleep)
    except FileNotFoundError:
        return  # the ranks have removed it meanwhile
    except OSError as error:
        raise StorageError(
            FOLDER_UNUSABLE, f"{bucket.field}: {quoted(file.path)} can't be read: {error.strerror}"
        ) from None
