"""Sync a job's checkpoints between a folder of the node and S3. Blocks the thread."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from pathlib import Path

from muster.api.s3_uri import S3Uri
from muster.render.storage.errors import FOLDER_UNUSABLE, StorageError
from muster.render.storage.objects import FileObject, to_file_objects
from muster.storage.retry import Sleep, retry
from muster.storage.s3.bucket import Bucket
from muster.storage.s3.concurrent_steps import run_concurrently
from muster.storage.s3.download import DownloadFolders, download_objects
from muster.storage.s3.upload import LocalFile, describe_file, list_files, make_key, upload

SETTLED_SECONDS = 5.0
"""A file that changed less than this time ago may be incomplete while the ranks run."""

_NS = 1_000_000_000


@dataclass(frozen=True)
class _SyncedFile:
    """A file that is the same in both folders: its local state, and its object's etag."""

    file: LocalFile
    etag: str


class CheckpointSync:
    """Syncs a local folder with the S3 folder `uri`, without deleting files in either folder."""

    def __init__(
        self, bucket: Bucket, uri: S3Uri, download_folders: DownloadFolders, sleep: Sleep, clock: Callable[[], float]
    ) -> None:
        """`clock` returns Unix seconds."""
        self._bucket = bucket
        self._uri = replace(uri, key=f"{uri.key.rstrip('/')}/" if uri.key else "")
        self._download_folders = download_folders
        self._sleep = sleep
        self._clock = clock
        self._record_file = download_folders.records / "known.json"
        self._synced_files = _read_record(self._record_file, str(self._uri))

    def download(self) -> int:
        """Download newer files; return their number. Raises `StorageError`."""
        result = retry(lambda: list(self._bucket.list_objects(self._uri.key)), self._sleep)
        missing_objects = [
            file_object
            for file_object in to_file_objects(result, self._uri, self._bucket.field)
            if not self._has(file_object)
        ]
        download_objects(self._bucket, missing_objects, self._download_folders, self._sleep, lambda _: None)
        local_files = {file.path: file for file in self._list_files()} if missing_objects else {}
        self._synced_files |= {
            file_object.path: _SyncedFile(local_files[file_object.path], file_object.s3_object.etag)
            for file_object in missing_objects
            if file_object.path in local_files
        }
        # `_synced_files` has the downloaded files now. Remove the log, which wouldn't notice when a rank rewrites them.
        (self._download_folders.records / "fetched.jsonl").unlink(missing_ok=True)
        self._write_record()
        return len(missing_objects)

    def upload(self, settled_seconds: float = 0.0) -> int:
        """Upload changed files, oldest first, because files usually refer to older files.

        Skip files that changed less than `settled_seconds` ago. Return the number of uploaded files.
        Raises `StorageError`.
        """
        newest_ns = (self._clock() - settled_seconds) * _NS if settled_seconds else float("inf")
        changed_files = [file for file in self._list_files() if file.changed_ns <= newest_ns and self._is_changed(file)]
        changed_files.sort(key=lambda file: file.changed_ns)
        for _, group in groupby(changed_files, key=lambda file: file.changed_ns // _NS):
            files = list(group)
            upload(self._bucket, self._download_folders.folder, files, self._uri, self._sleep)
            self._record_all(files)
        return len(changed_files)

    def _has(self, file_object: FileObject) -> bool:
        entry = self._synced_files.get(file_object.path)
        return (
            entry is not None
            and entry.etag == file_object.s3_object.etag
            and (self._download_folders.folder / file_object.path).exists()
        )

    def _is_changed(self, file: LocalFile) -> bool:
        entry = self._synced_files.get(file.path)
        return entry is None or entry.file != file

    def _record_all(self, files: list[LocalFile]) -> None:
        """Record uploaded files, except files that changed during the upload, which the next sync uploads again."""
        root = self._download_folders.folder.resolve()
        run_concurrently(partial(self._record_one, file) for file in files if describe_file(root, file.path) == file)
        self._write_record()

    def _record_one(self, file: LocalFile) -> None:
        key = make_key(self._uri, file.path, self._bucket.field)
        s3_object = retry(partial(self._bucket.head, key), self._sleep)
        self._synced_files[file.path] = _SyncedFile(file, s3_object.etag)

    def _list_files(self) -> Iterator[LocalFile]:
        return list_files(self._download_folders.folder)

    def _write_record(self) -> None:
        entries = [
            [synced.file.path, synced.file.size, synced.file.changed_ns, synced.etag]
            for synced in self._synced_files.values()
        ]
        new_file = self._record_file.with_suffix(".new")
        try:
            self._record_file.parent.mkdir(parents=True, exist_ok=True)
            new_file.write_text(json.dumps({"uri": str(self._uri), "files": entries}), encoding="utf-8")
            new_file.replace(self._record_file)
        except OSError as error:
            raise StorageError(
                FOLDER_UNUSABLE, f"{self._bucket.field}: the record of the sync can't be written: {error}"
            ) from None


def _read_record(record_file: Path, uri: str) -> dict[str, _SyncedFile]:
    """Return the recorded files for `uri`; {} if the record is for another URI."""
    try:
        record = json.loads(record_file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    entries = record["files"] if record["uri"] == uri else []
    return {path: _SyncedFile(LocalFile(path, size, changed_ns), etag) for path, size, changed_ns, etag in entries}
