"""List the files of a git tree, and reject entries that need a checkout."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from dataclasses import dataclass

from dulwich.objects import ObjectID, Tree, TreeEntry

from muster.api.document import quote
from muster.render.storage.source_files import MAX_FILES, make_source_refused_error
from muster.storage.git.objects import BLOB, GitObjects, ObjectLocation

_MAX_DEPTH = 64

_MAX_FOLDERS = 3 * MAX_FILES
"""Maximum number of folders in a tree. A folder that occurs several times counts each time."""


@dataclass(frozen=True, slots=True)
class TreeFile:
    """A file of a tree, and the position of its content."""

    location: ObjectLocation
    executable: bool


def find_tree(objects: GitObjects, tree: ObjectID, path: str, field: str) -> ObjectID:
    """Return the tree of folder `path` in `tree`. Raises `StorageError` if there is none."""
    for part in path.split("/") if path else ():
        entries = {entry.path: entry for entry in _read_tree(objects, tree, field).iteritems()}
        entry = entries.get(part.encode("utf-8"))
        if entry is None or not stat.S_ISDIR(entry.mode):
            raise make_source_refused_error(f"{field}.path", f"the commit has no folder {quote(path)}")
        tree = entry.sha
    return tree


def list_files(objects: GitObjects, tree: ObjectID, field: str) -> Iterator[tuple[str, TreeFile]]:
    """Yield every file of `tree` with its path. Raises `StorageError` for links and submodules."""
    return _TreeWalk(objects, field).list_files(tree, "", _MAX_DEPTH)


@dataclass
class _TreeWalk:
    """A walk through a tree, with the number of visited folders."""

    objects: GitObjects
    field: str
    folders: int = 0

    def list_files(self, tree: ObjectID, folder: str, depth: int) -> Iterator[tuple[str, TreeFile]]:
        field = self.field
        if depth == 0:
            raise make_source_refused_error(field, f"folders are nested more than {_MAX_DEPTH} levels deep")
        # Count folders, because a folder may contain another folder many times, at each of sixty levels.
        self.folders += 1
        if self.folders > _MAX_FOLDERS:
            raise make_source_refused_error(field, f"the commit has more than {_MAX_FOLDERS} folders")
        for entry in _read_tree(self.objects, tree, field).iteritems(name_order=True):
            path = folder + _decode_name(entry.path, field)
            if stat.S_ISDIR(entry.mode):
                yield from self.list_files(entry.sha, f"{path}/", depth - 1)
            else:
                yield path, self._make_file(entry, path)

    def _make_file(self, entry: TreeEntry, path: str) -> TreeFile:
        if stat.S_ISLNK(entry.mode):
            # A link could lead out of the folder.
            raise make_source_refused_error(self.field, f"{quote(path)} is a symbolic link; replace it with the file")
        if not stat.S_ISREG(entry.mode):
            raise make_source_refused_error(
                self.field, f"{quote(path)} is a submodule, and the commit does not contain its files"
            )
        location = self.objects.find(entry.sha)
        if location is None or location.kind != BLOB:
            raise make_source_refused_error(self.field, f"{quote(path)} is missing in the server's response")
        return TreeFile(location, executable=bool(entry.mode & stat.S_IXUSR))


def _read_tree(objects: GitObjects, name: ObjectID, field: str) -> Tree:
    tree = objects.read_tree(name)
    if tree is None:
        raise make_source_refused_error(field, "a folder of the commit is missing in the server's response")
    return tree


def _decode_name(name: bytes, field: str) -> str:
    try:
        return name.decode("utf-8")
    except UnicodeDecodeError:
        raise make_source_refused_error(field, f"{quote(repr(name))} is not valid UTF-8") from None
