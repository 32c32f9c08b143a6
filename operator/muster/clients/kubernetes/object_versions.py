"""Record the versions of existing objects, and find changes in lists and watches. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from muster.api.json_fields import read_mapping, read_string
from muster.clients.kubernetes.client import Change
from muster.objects.kubernetes.kinds import Object
from muster.objects.kubernetes.object_parser import read_missing_parts

# The fields that identify an object and its owner. Other fields are dropped, because there may be many objects.
_IDENTITY_FIELDS = ("name", "namespace", "uid", "resourceVersion", "ownerReferences")


@dataclass(frozen=True)
class _ObjectVersion:
    uid: str
    version: str
    metadata_only: Object


class ObjectVersions:
    """The known objects of one kind. `record` receives changes in order, and returns those that are new."""

    stores_versions: Final = True

    def __init__(self) -> None:
        self._objects: dict[tuple[str, str], _ObjectVersion] = {}

    def record(self, change: Change) -> tuple[Change, ...]:
        """Return the new changes: none for a known version, and DELETED and ADDED for a replaced object."""
        identity, version = get_object_key(change.object), _build_version(change.object)
        previous = self._objects.get(identity)
        if change.type == "DELETED":
            if previous is None or previous.uid != version.uid:
                return ()
            del self._objects[identity]
            return (change,)
        if is_identity_only(change.object):
            # Only the identity was parsed. Forget the object: its later changes can't be compared with this one.
            self._objects.pop(identity, None)
            return () if previous is None else (Change("MODIFIED", change.object),)
        self._objects[identity] = version
        if previous is None:
            return (Change("ADDED", change.object),)
        if previous.uid != version.uid:
            return (Change("DELETED", previous.metadata_only), Change("ADDED", change.object))
        return () if previous.version == version.version else (Change("MODIFIED", change.object),)

    def keep_only(self, listed_keys: frozenset[tuple[str, str]]) -> tuple[Change, ...]:
        """Remove the objects that a complete list lacks. Return a DELETED change for each, with its metadata."""
        deleted = [identity for identity in self._objects if identity not in listed_keys]
        return tuple(Change("DELETED", self._objects.pop(identity).metadata_only) for identity in deleted)


class NoObjectVersions:
    """Does what `ObjectVersions` does, but stores nothing. Use it for kinds whose number of objects has no limit."""

    stores_versions: Final = False

    def record(self, change: Change) -> tuple[Change, ...]:
        """Return the change, or nothing if only the object's identity was parsed."""
        return () if is_identity_only(change.object) else (change,)

    def keep_only(self, _: frozenset[tuple[str, str]]) -> tuple[Change, ...]:
        """Return nothing."""
        return ()


def get_object_key(item: Object) -> tuple[str, str]:
    """Return the object's namespace and name."""
    metadata = read_mapping(item.get("metadata"))
    return read_string(metadata.get("namespace")), read_string(metadata.get("name"))


def is_identity_only(item: Object) -> bool:
    """Whether only the object's identity was parsed."""
    return "" in read_missing_parts(item)


def get_uid(item: Object) -> str:
    """Return the object's uid."""
    return read_string(read_mapping(item.get("metadata")).get("uid"))


def get_version(item: Object) -> str:
    """Return the object's resourceVersion."""
    return read_string(read_mapping(item.get("metadata")).get("resourceVersion"))


def _build_version(item: Object) -> _ObjectVersion:
    metadata = read_mapping(item.get("metadata"))
    metadata_only: Object = {
        **{field: item[field] for field in ("apiVersion", "kind") if field in item},
        "metadata": {field: metadata[field] for field in _IDENTITY_FIELDS if field in metadata},
    }
    return _ObjectVersion(read_string(metadata.get("uid")), get_version(item), metadata_only)
