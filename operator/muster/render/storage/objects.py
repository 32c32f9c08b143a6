"""Select the objects of S3 for a node, and their paths. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from muster.api import file_paths
from muster.api.document import quote
from muster.api.s3_uri import S3Uri
from muster.render.storage.errors import S3_KEYS_UNUSABLE, S3_NOT_FOUND, StorageError


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object in a listing. `etag` changes with its content; `size` is in bytes."""

    key: str
    size: int
    etag: str


@dataclass(frozen=True, slots=True)
class FileObject:
    """An object, and the path of its file below a folder."""

    stored: StoredObject
    path: str


def share(objects: Iterable[FileObject], node: int, nodes: int) -> list[FileObject]:
    """The node's share: the sorted keys, distributed round-robin, so that shares differ by at most one object.

    SageMaker's documentation of ShardedByS3Key says that "each instance gets approximately 1/n of the number of S3
    objects", and not which ones (API reference, S3DataSource).
    """
    return sorted(objects, key=lambda file: file.stored.key.encode("utf-8"))[node::nodes]


def placed(objects: Sequence[StoredObject], uri: S3Uri, field: str) -> tuple[FileObject, ...]:
    """Determine the path of each object below `uri`. Raises `StorageError` if a key can't become a file.

    Markers that consoles create for empty folders are skipped. Paths start after the last / of the URI. A URI without a
    final / may also be a folder: s3://b/train has train/1.png as 1.png.
    """
    result = tuple(
        FileObject(stored, _path(stored.key, uri.key))
        for stored in objects
        if stored.size or not stored.key.endswith("/")
    )
    for file in result:
        objection = file_paths.find_path_problem(file.path)
        if objection is not None:
            raise _unusable(field, f"{quote(file.stored.key)} can't become a file: {objection}")
    paths = [file.path for file in result]
    if len(set(paths)) < len(paths):
        twice = next(path for path in paths if paths.count(path) > 1)
        raise _unusable(field, f"two keys become the file {quote(twice)}; name a longer prefix")
    both = file_paths.find_file_and_folder(paths)
    if both is not None:
        raise _unusable(field, f"{quote(both)} is an object, and other keys begin with {quote(both + '/')}")
    return result


def check_case(result: Iterable[FileObject], field: str) -> None:
    """Raise `StorageError` if two files would be the same on a case-insensitive file system."""
    visited: dict[str, str] = {}
    for file in result:
        other = visited.setdefault(file.path.casefold(), file.path)
        if other != file.path:
            raise _unusable(
                field, f"{quote(other)} and {quote(file.path)} are one file here: the file system ignores case"
            )


def nothing_found(uri: S3Uri, field: str) -> StorageError:
    """The problem with a URI without objects."""
    return StorageError(S3_NOT_FOUND, f"{field}: no key in bucket {uri.bucket} begins with {quote(uri.key)}")


def _path(key: str, prefix: str) -> str:
    rest = key[len(prefix) :]
    if prefix and not prefix.endswith("/") and rest.startswith("/"):
        return rest[1:]
    return prefix.rpartition("/")[2] + rest


def _unusable(field: str, why: str) -> StorageError:
    return StorageError(S3_KEYS_UNUSABLE, f"{field}: {why}")
