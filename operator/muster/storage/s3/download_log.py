"""A persistent log of the objects that are already in a folder."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Lock
from typing import Self

from muster.render.storage.objects import FileObject


class DownloadLog:
    """The log: a file with one line for each object. muster ignores truncated lines."""

    def __init__(self, file: Path) -> None:
        """Open the log and read it. Raises `OSError`."""
        self._etags: dict[str, str] = {}
        self._lock = Lock()
        if file.exists():
            for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
                self._read_line(line)
        self._file = file.open("a", encoding="utf-8")

    def _read_line(self, line: str) -> None:
        try:
            path, etag = json.loads(line)
        except (ValueError, TypeError):
            return
        self._etags[str(path)] = str(etag)

    def contains(self, file_object: FileObject, folder: Path) -> bool:
        """Whether the file exists with the object's current content."""
        file = folder / file_object.path
        try:
            has_size = file.stat(follow_symlinks=False).st_size == file_object.s3_object.size
        except OSError:
            return False
        return has_size and self._etags.get(file_object.path) == file_object.s3_object.etag

    def add(self, file_object: FileObject) -> None:
        """Record the file. Raises `OSError`."""
        with self._lock:
            self._etags[file_object.path] = file_object.s3_object.etag
            # Begin with a newline, because the last line may be truncated.
            self._file.write("\n" + json.dumps([file_object.path, file_object.s3_object.etag]) + "\n")
            self._file.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
