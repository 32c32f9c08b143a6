"""The files of a git tree, without what only a checkout could make of them."""

from __future__ import annotations

import stat
from collections.abc import Iterator

from dulwich.object_store import MemoryObjectStore
from dulwich.objects import Blob, ObjectID, ShaFile, Tree

from muster.api.document import quoted
from muster.storage.source_files import SourceFile, refused

_MAX_DEPTH = 64


def found(store: MemoryObjectStore, name: ObjectID) -> ShaFile | None:
    """The object of that name, if it is there."""
    try:
        return store[name]
    except KeyError:
        return None


def tree_below(store: MemoryObjectStore, tree: ObjectID, path: str, origin: str) -> ObjectID:
    """The tree of folder `path` in `tree`. Raises `StorageTrouble` where there is none."""
    for part in path.split("/") if path else ():
        entries = {entry.path: entry for entry in _tree(store, tree, origin).iteritems()}
        entry = entries.get(part.encode("utf-8"))
        if entry is None or not stat.S_ISDIR(entry.mode):
            raise refused(f"{origin}.path", f"the commit has no folder {quoted(path)}")
        tree = entry.sha
    return tree


def files_of(
    store: MemoryObjectStore, tree: ObjectID, origin: str, folder: str = "", depth: int = _MAX_DEPTH
) -> Iterator[tuple[str, SourceFile]]:
    """Every file of `tree` by its path. Raises `StorageTrouble` for what isn't a file or a folder."""
    if depth == 0:
        raise refused(origin, f"it has more than {_MAX_DEPTH} folders within one another")
    for entry in _tree(store, tree, origin).iteritems(name_order=True):
        path = folder + _text(entry.path, origin)
        if stat.S_ISDIR(entry.mode):
            yield from files_of(store, entry.sha, origin, f"{path}/", depth - 1)
        elif stat.S_ISLNK(entry.mode):
            # it could lead out of the folder, and archives of SageMaker's containers need none
            raise refused(origin, f"{quoted(path)} is a symbolic link; put the file itself there")
        elif not stat.S_ISREG(entry.mode):
            raise refused(origin, f"{quoted(path)} is a submodule, which a commit has only the name of")
        else:
            blob = found(store, entry.sha)
            if not isinstance(blob, Blob):
                raise refused(origin, f"{quoted(path)} is missing in what the server sent")
            yield path, SourceFile(blob.as_raw_string(), executable=bool(entry.mode & stat.S_IXUSR))


def _tree(store: MemoryObjectStore, name: ObjectID, origin: str) -> Tree:
    tree = found(store, name)
    if not isinstance(tree, Tree):
        raise refused(origin, "a folder of the commit is missing in what the server sent")
    return tree


def _text(name: bytes, origin: str) -> str:
    try:
        return name.decode("utf-8")
    except UnicodeDecodeError:
        raise refused(origin, f"{quoted(repr(name))} is no name in UTF-8") from None
