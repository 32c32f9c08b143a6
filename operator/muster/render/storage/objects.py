"""Select a node's objects in S3, and the paths of their files. Pure."""

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

    s3_object: StoredObject
    path: str


def select_shard(objects: Iterable[FileObject], node: int, nodes: int) -> list[FileObject]:
    """Return the node's objects. The nodes get the sorted keys in turn, so their numbers differ by at most one.

    With SageMaker's ShardedByS3Key, each instance gets "approximately 1/n" of the objects (API reference,
    S3DataSource).
    """
    return sorted(objects, key=lambda file: file.s3_object.key.encode("utf-8"))[node::nodes]


def to_file_objects(objects: Sequence[StoredObject], uri: S3Uri, field: str) -> tuple[FileObject, ...]:
    """Return each object with the path of its file. Raises `StorageError` if a key can't become a file.

    Skips the markers that consoles create for empty folders. A path starts after the last / of the URI. A URI without a
    final / may also name a folder: then train/1.png in s3://b/train becomes 1.png.
    """
    result = tuple(
        FileObject(s3_object, _make_path(s3_object.key, uri.key))
        for s3_object in objects
        if s3_object.size or not s3_object.key.endswith("/")
    )
    for file in result:
        path_problem = file_paths.find_path_problem(file.path)
        if path_problem is not None:
            raise _make_error(field, f"{quote(file.s3_object.key)} can't become a file: {path_problem}")
    paths = [file.path for file in result]
    if len(set(paths)) < len(paths):
        duplicate = next(path for path in paths if paths.count(path) > 1)
        raise _make_error(field, f"two keys become the file {quote(duplicate)}; use a longer prefix")
    conflict = file_paths.find_file_and_folder(paths)
    if conflict is not None:
        raise _make_error(field, f"{quote(conflict)} is an object, and other keys begin with {quote(conflict + '/')}")
    return result


def check_case(result: Iterable[FileObject], field: str) -> None:
    """Raise `StorageError` if two files would be the same on a case-insensitive file system."""
    visited: dict[str, str] = {}
    for file in result:
        other = visited.setdefault(file.path.casefold(), file.path)
        if other != file.path:
            raise _make_error(
                field, f"{quote(other)} and {quote(file.path)} are one file here: the file system ignores case"
            )


def make_no_objects_error(uri: S3Uri, field: str) -> StorageError:
    """Return the error for a URI without objects."""
    return StorageError(S3_NOT_FOUND, f"{field}: no key in bucket {uri.bucket} begins with {quote(uri.key)}")


def _make_path(key: str, prefix: str) -> str:
    suffix = key[len(prefix) :]
    if prefix and not prefix.endswith("/") and suffix.startswith("/"):
        return suffix[1:]
    return prefix.rpartition("/")[2] + suffix


def _make_error(field: str, reason: str) -> StorageError:
    return StorageError(S3_KEYS_UNUSABLE, f"{field}: {reason}")
