"""Which objects of S3 a node gets, and where each of them is put. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from muster.api import file_paths
from muster.api.document import quoted
from muster.api.s3_uri import S3Uri
from muster.render.storage.errors import S3_KEYS_UNUSABLE, S3_NOT_FOUND, StorageError


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object as a listing tells of it. `etag` changes with its content; `size` is in bytes."""

    key: str
    size: int
    etag: str


@dataclass(frozen=True, slots=True)
class Placed:
    """An object, and the path of the file that it becomes below a folder."""

    stored: StoredObject
    path: str


def share(objects: Iterable[Placed], node: int, nodes: int) -> list[Placed]:
    """The node's share: the keys in their order, dealt to the nodes one by one, so that shares differ by one at most.

    SageMaker says of ShardedByS3Key that "each instance gets approximately 1/n of the number of S3 objects", and not
    which ones (API reference, S3DataSource).
    """
    return sorted(objects, key=lambda one: one.stored.key.encode("utf-8"))[node::nodes]


def placed(objects: Sequence[StoredObject], uri: S3Uri, field: str) -> tuple[Placed, ...]:
    """Where each object is put that was found under `uri`. Raises `StorageError` when one may not be made as a file.

    The markers that consoles make for empty folders become nothing. What the URI names up to its last / is left out of
    the paths; a URI without a / at its end may stand for a folder, too: s3://b/train has train/1.png as 1.png.
    """
    result = tuple(
        Placed(stored, _path(stored.key, uri.key)) for stored in objects if stored.size or not stored.key.endswith("/")
    )
    for one in result:
        objection = file_paths.objection(one.path)
        if objection is not None:
            raise _unusable(field, f"{quoted(one.stored.key)} can't become a file: {objection}")
    paths = [one.path for one in result]
    if len(set(paths)) < len(paths):
        twice = next(path for path in paths if paths.count(path) > 1)
        raise _unusable(field, f"two keys become the file {quoted(twice)}; name a longer prefix")
    both = file_paths.file_and_folder(paths)
    if both is not None:
        raise _unusable(field, f"{quoted(both)} is an object, and other keys begin with {quoted(both + '/')}")
    return result


def check_case(result: Iterable[Placed], field: str) -> None:
    """Raises `StorageError` where two files would be one in a folder that doesn't tell A from a."""
    visited: dict[str, str] = {}
    for one in result:
        other = visited.setdefault(one.path.casefold(), one.path)
        if other != one.path:
            raise _unusable(field, f"{quoted(other)} and {quoted(one.path)} are one file here, where case counts not")


def nothing_found(uri: S3Uri, field: str) -> StorageError:
    """The problem with a place where no object is."""
    return StorageError(S3_NOT_FOUND, f"{field}: no key in bucket {uri.bucket} begins with {quoted(uri.key)}")


def _path(key: str, prefix: str) -> str:
    rest = key[len(prefix) :]
    if prefix and not prefix.endswith("/") and rest.startswith("/"):
        return rest[1:]
    return prefix.rpartition("/")[2] + rest


def _unusable(field: str, why: str) -> StorageError:
    return StorageError(S3_KEYS_UNUSABLE, f"{field}: {why}")
