"""A list of the objects that are already in a folder; it survives the process that wrote it."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Lock
from typing import Self

from muster.render.storage.objects import FileObject


class Fetched:
    """The list, a file with one line an object. A truncated line is ignored."""

    def __init__(self, file: Path) -> None:
        """Raises `OSError`."""
        self._etags: dict[str, str] = {}
        self._lock = Lock()
        if file.exists():
            for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
                self._learn(line)
        self._file = file.open("a", encoding="utf-8")

    def _learn(self, line: str) -> None:
        try:
            path, etag = json.loads(line)
        except (ValueError, TypeError):
            return
        self._etags[str(path)] = str(etag)

    def has(self, one: FileObject, folder: Path) -> bool:
        """Whether the file exists with the object's current content."""
        file = folder / one.path
        try:
            there = file.stat(follow_symlinks=False).st_size == one.stored.size
        except OSError:
            return False
        return there and self._etags.get(one.path) == one.stored.etag

    def add(self, one: FileObject) -> None:
        """Record the file. Raises `OSError`."""
        with self._lock:
            self._etags[one.path] = one.stored.etag
            # begin with a newline: the last line may be truncated
            self._file.write("\n" + json.dumps([one.path, one.stored.etag]) + "\n")
            self._file.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
