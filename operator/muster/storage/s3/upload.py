"""Upload a folder's files to S3. Blocks the thread."""

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
"""Maximum length of a key (Amazon S3 User Guide, "Naming Amazon S3 objects")."""

_SINGLE_FILE_REASONS = frozenset((S3_ACCESS_DENIED, S3_REFUSED, FOLDER_UNUSABLE))
"""The reasons of errors that concern only one file."""


@dataclass(frozen=True)
class LocalFile:
    """A file, by its path below a folder, with its size and its modification time in nanoseconds."""

    path: str
    size: int
    changed_ns: int


def list_files(folder: Path) -> Iterator[LocalFile]:
    """Yield every file below `folder`. Follow links within it, and skip files that are deleted meanwhile.

    Skip links to other folders, because their targets are not the ranks' output.
    """
    root = folder.resolve()
    for folder_path, folders, names in os.walk(root):
        folders.sort()
        for name in sorted(names):
            result = describe_file(root, str(Path(folder_path, name).relative_to(root)))
            if result is not None:
                yield result


def describe_file(root: Path, path: str) -> LocalFile | None:
    """Return the file at `path` below the resolved folder `root`; None if `list_files` would skip it."""
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


def upload_despite_errors(bucket: Bucket, folder: Path, files: Iterable[LocalFile], uri: S3Uri, sleep: Sleep) -> None:
    """Do the same as `upload`, but continue after an error of a single file, and raise the error at the end."""
    problems: list[StorageError] = []

    def upload_one(file: LocalFile) -> None:
        try:
            _upload_file(bucket, folder, file, uri, sleep)
        except StorageError as problem:
            if problem.reason not in _SINGLE_FILE_REASONS:
                raise
            problems.append(problem)

    run_concurrently(partial(upload_one, file) for file in files)
    if problems:
        other_failures = (
            f"; {len(problems) - 1} more of these files can't be uploaded either" if len(problems) > 1 else ""
        )
        raise StorageError(problems[0].reason, problems[0].message + other_failures)


def make_key(uri: S3Uri, path: str, field: str) -> str:
    """Return the key of a file below `uri`. Raises `StorageError` for a name that S3 does not allow."""
    try:
        key = uri.join_path(path).key
        if len(key.encode("utf-8")) <= MAX_KEY_BYTES:
            return key
        reason = f"its key would have more than {MAX_KEY_BYTES} bytes"
    except UnicodeEncodeError:
        reason = "its name is not UTF-8"
    raise StorageError(FOLDER_UNUSABLE, f"{field}: {quote(ascii(path))} can't be uploaded to S3: {reason}")


def _upload_file(bucket: Bucket, folder: Path, file: LocalFile, uri: S3Uri, sleep: Sleep) -> None:
    key = make_key(uri, file.path, bucket.field)
    try:
        # A link may have replaced the file since `list_files`.
        with pin_file(folder, file.path) as pinned:
            retry(lambda: bucket.upload(key, pinned), sleep)
    except FileNotFoundError:
        return  # the ranks have removed the file meanwhile
    except OSError as error:
        raise StorageError(
            FOLDER_UNUSABLE, f"{bucket.field}: {quote(file.path)} can't be read: {error.strerror}"
        ) from None
