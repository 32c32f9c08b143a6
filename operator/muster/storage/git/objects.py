"""Store the objects of a commit in a file, so that large objects need little memory."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import BinaryIO, Self

from dulwich.objects import Commit, ObjectID, Tree

from muster.render.storage.git_folder import GIT_FIELD
from muster.render.storage.source_files import make_source_refused_error

CHUNK_BYTES = 2**18
"""The size of a chunk in memory."""

MAX_PARSED_BYTES = 8 * 2**20
"""Maximum size of a tree or commit that dulwich parses. Ten thousand entries with long names have 3 MiB."""

COMMIT, TREE, BLOB, TAG = 1, 2, 3, 4
_NAMES = {COMMIT: b"commit", TREE: b"tree", BLOB: b"blob", TAG: b"tag"}


@dataclass(frozen=True, slots=True)
class ObjectLocation:
    """The position of an object's content in the file. `kind` is the object type's number in a pack."""

    kind: int
    offset: int
    size: int


class GitObjects:
    """Stores objects by their names, which are hashes of their content."""

    def __init__(self, file: BinaryIO) -> None:
        """Store the objects in `file`, an empty file with a descriptor."""
        self._file = file
        self._fd = file.fileno()
        self._end = 0
        self._locations: dict[ObjectID, ObjectLocation] = {}

    @classmethod
    def in_temporary_file(cls) -> Self:
        """Create a store in a temporary file, which `close` removes."""
        return cls(TemporaryFile())

    def close(self) -> None:
        """Remove all objects."""
        self._file.close()

    def add(self, kind: int, size: int, content: Iterable[bytes]) -> ObjectID:
        """Add an object; return its name. Raises `ValueError` if the content does not have `size` bytes."""
        digest = hashlib.sha1(b"%s %d\0" % (_NAMES[kind], size), usedforsecurity=False)
        offset = self._end
        for chunk in content:
            digest.update(chunk)
            self._append(chunk)
            if self._end - offset > size:
                break
        if self._end - offset != size:
            raise ValueError("an object's size differs from its size in the pack")
        name = ObjectID(digest.hexdigest().encode("ascii"))
        self._locations[name] = ObjectLocation(kind, offset, size)
        return name

    def store(self, content: Iterable[bytes]) -> tuple[int, int]:
        """Store data that is not an object; return its offset and size."""
        offset = self._end
        for chunk in content:
            self._append(chunk)
        return offset, self._end - offset

    def find(self, name: ObjectID) -> ObjectLocation | None:
        """Return the position of the object; None if it is missing."""
        return self._locations.get(name)

    def read_chunks(self, offset: int, size: int) -> Iterator[bytes]:
        """Read `size` bytes at `offset`, in chunks."""
        while size > 0:
            chunk = os.pread(self._fd, min(size, CHUNK_BYTES), offset)
            if not chunk:
                raise EOFError("the objects end too early")
            yield chunk
            offset, size = offset + len(chunk), size - len(chunk)

    def open(self, location: ObjectLocation) -> ObjectContent:
        """Open an object's content for reading in chunks."""
        return ObjectContent(self._fd, location)

    def read_content(self, location: ObjectLocation) -> bytes:
        """Read an object's content into memory."""
        return b"".join(self.read_chunks(location.offset, location.size))

    def read_commit(self, name: ObjectID) -> Commit | None:
        """Return the commit; None if it is missing. Raises `StorageError`, and the errors of dulwich's parser."""
        content = self._read_parsable(name, COMMIT)
        return None if content is None else Commit.from_string(content)

    def read_tree(self, name: ObjectID) -> Tree | None:
        """Return the tree; None if it is missing. Raises `StorageError`, and the errors of dulwich's parser."""
        content = self._read_parsable(name, TREE)
        return None if content is None else Tree.from_string(content)

    def _read_parsable(self, name: ObjectID, kind: int) -> bytes | None:
        location = self._locations.get(name)
        if location is None or location.kind != kind:
            return None
        if location.size > MAX_PARSED_BYTES:
            raise make_source_refused_error(
                GIT_FIELD, f"the list of a folder has more than {MAX_PARSED_BYTES // 2**20} MiB"
            )
        return self.read_content(location)

    def _append(self, chunk: bytes) -> None:
        view = memoryview(chunk)
        while view:
            count = os.pwrite(self._fd, view, self._end)
            self._end += count
            view = view[count:]


class ObjectContent:
    """An object's content as a readable file."""

    def __init__(self, fd: int, location: ObjectLocation) -> None:
        self._fd = fd
        self._position = location.offset
        self._end = location.offset + location.size

    def read(self, size: int, /) -> bytes:
        """Read at most `size` bytes; b"" at the end."""
        chunk = os.pread(self._fd, min(size, self._end - self._position), self._position)
        self._position += len(chunk)
        return chunk
