"""Sync a job's checkpoints between a folder of the node and S3. Blocks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from pathlib import Path

from muster.api.s3_uri import S3Uri
from muster.render.storage.errors import FOLDER_UNUSABLE, StorageError
from muster.render.storage.objects import FileObject, placed
from muster.storage.retry import Sleep, retry
from muster.storage.s3.bucket import Bucket
from muster.storage.s3.concurrent_steps import run_concurrently
from muster.storage.s3.download import Into, fetch
from muster.storage.s3.upload import LocalFile, file_at, files_of, key_of, upload

SETTLED_SECONDS = 5.0
"""While ranks run, a file changed more recently than this may be incomplete."""

_NS = 1_000_000_000


@dataclass(frozen=True)
class _StoredFile:
    """A file with the same content in both places: its local state, and its object's etag."""

    file: LocalFile
    etag: str


class Snapshots:
    """`uri` names a folder. Files deleted in one place stay in the other: two checkpoints are better than none."""

    def __init__(self, bucket: Bucket, uri: S3Uri, into: Into, sleep: Sleep, clock: Callable[[], float]) -> None:
        """`clock` returns Unix seconds, like the times of files."""
        self._bucket = bucket
        self._uri = replace(uri, key=f"{uri.key.rstrip('/')}/" if uri.key else "")
        self._into = into
        self._sleep = sleep
        self._clock = clock
        self._note = into.notes / "known.json"
        self._known = _read(self._note, str(self._uri))

    def download(self) -> int:
        """Download newer files; return their number. Raises `StorageError`."""
        result = retry(lambda: list(self._bucket.objects(self._uri.key)), self._sleep)
        wanted = [one for one in placed(result, self._uri, self._bucket.field) if not self._has(one)]
        fetch(self._bucket, wanted, self._into, self._sleep, lambda _: None)
        here = {file.path: file for file in self._files()} if wanted else {}
        self._known |= {one.path: _StoredFile(here[one.path], one.stored.etag) for one in wanted if one.path in here}
        # `_known` now has these files; the download's list would mistake a rewritten file for the old one
        (self._into.notes / "fetched.jsonl").unlink(missing_ok=True)
        self._remember()
        return len(wanted)

    def upload(self, settled_seconds: float = 0.0) -> int:
        """Upload files that are newer here, oldest first: a file that refers to others is usually written after them.

        Files that changed less than `settled_seconds` ago wait for the next time. Return the number of uploaded files.
        Raises `StorageError`.
        """
        newest = (self._clock() - settled_seconds) * _NS if settled_seconds else float("inf")
        changed = [file for file in self._files() if file.changed_ns <= newest and self._is_news(file)]
        changed.sort(key=lambda file: file.changed_ns)
        for _, group in groupby(changed, key=lambda file: file.changed_ns // _NS):
            files = list(group)
            upload(self._bucket, self._into.folder, files, self._uri, self._sleep)
            self._learn(files)
        return len(changed)

    def _has(self, one: FileObject) -> bool:
        entry = self._known.get(one.path)
        return entry is not None and entry.etag == one.stored.etag and (self._into.folder / one.path).exists()

    def _is_news(self, file: LocalFile) -> bool:
        entry = self._known.get(file.path)
        return entry is None or entry.file != file

    def _learn(self, files: list[LocalFile]) -> None:
        """Record uploaded files, except those that changed meanwhile: they will be uploaded again."""
        root = self._into.folder.resolve()
        run_concurrently(partial(self._learn_one, file) for file in files if file_at(root, file.path) == file)
        self._remember()

    def _learn_one(self, file: LocalFile) -> None:
        key = key_of(self._uri, file.path, self._bucket.field)
        stored = retry(partial(self._bucket.head, key), self._sleep)
        self._known[file.path] = _StoredFile(file, stored.etag)

    def _files(self) -> Iterator[LocalFile]:
        return files_of(self._into.folder)

    def _remember(self) -> None:
        entries = [[one.file.path, one.file.size, one.file.changed_ns, one.etag] for one in self._known.values()]
        new = self._note.with_suffix(".new")
        try:
            self._note.parent.mkdir(parents=True, exist_ok=True)
            new.write_text(json.dumps({"uri": str(self._uri), "files": entries}), encoding="utf-8")
            new.replace(self._note)
        except OSError as error:
            raise StorageError(FOLDER_UNUSABLE, f"{self._bucket.field}: notes can't be written: {error}") from None


def _read(note: Path, uri: str) -> dict[str, _StoredFile]:
    """The recorded files for `uri`; nothing if the record is for another URI."""
    try:
        noted = json.loads(note.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    entries = noted["files"] if noted["uri"] == uri else []
    return {path: _StoredFile(LocalFile(path, size, changed_ns), etag) for path, size, changed_ns, etag in entries}
