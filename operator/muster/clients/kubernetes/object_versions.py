"""Track the existing objects, and detect changes in lists and watches. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from muster.api.json_fields import mapping, string
from muster.clients.kubernetes.client import Change
from muster.objects.kubernetes.kinds import Object
from muster.objects.kubernetes.reading import left_out

# The fields that identify an object and its owner. Others are dropped: there may be many thousands of objects.
_IDENTITY_FIELDS = ("name", "namespace", "uid", "resourceVersion", "ownerReferences")


@dataclass(frozen=True)
class _ObjectVersion:
    uid: str
    version: str
    remains: Object


class ObjectVersions:
    """The objects of one kind in one place. `take` receives changes in order and returns the new ones."""

    remembers: Final = True

    def __init__(self) -> None:
        self._objects: dict[tuple[str, str], _ObjectVersion] = {}

    def take(self, change: Change) -> tuple[Change, ...]:
        """Return the resulting changes; none for a known version. A replaced object is reported as DELETED first."""
        identity, version = object_key(change.object), _build_version(change.object)
        before = self._objects.get(identity)
        if change.type == "DELETED":
            if before is None or before.uid != version.uid:
                return ()
            del self._objects[identity]
            return (change,)
        if is_identity_only(change.object):
            # Only its identity was parsed: treat it as not tracked.
            self._objects.pop(identity, None)
            return () if before is None else (Change("MODIFIED", change.object),)
        self._objects[identity] = version
        if before is None:
            return (Change("ADDED", change.object),)
        if before.uid != version.uid:
            return (Change("DELETED", before.remains), Change("ADDED", change.object))
        return () if before.version == version.version else (Change("MODIFIED", change.object),)

    def keep_only(self, visited: frozenset[tuple[str, str]]) -> tuple[Change, ...]:
        """Drop all objects that a complete list lacks: report each as DELETED, with its metadata."""
        vanished = [identity for identity in self._objects if identity not in visited]
        return tuple(Change("DELETED", self._objects.pop(identity).remains) for identity in vanished)


class Untracked:
    """Replaces `ObjectVersions` for kinds with any number of objects: it reports every change."""

    remembers: Final = False

    def take(self, change: Change) -> tuple[Change, ...]:
        """Return the change itself."""
        return () if is_identity_only(change.object) else (change,)

    def keep_only(self, _: frozenset[tuple[str, str]]) -> tuple[Change, ...]:
        """Return nothing."""
        return ()


def object_key(item: Object) -> tuple[str, str]:
    """The object's namespace and name."""
    metadata = mapping(item.get("metadata"))
    return string(metadata.get("namespace")), string(metadata.get("name"))


def is_identity_only(item: Object) -> bool:
    """Whether only the object's identity was parsed."""
    return "" in left_out(item)


def uid_of(item: Object) -> str:
    """The object's uid."""
    return string(mapping(item.get("metadata")).get("uid"))


def version_of(item: Object) -> str:
    """The object's resourceVersion."""
    return string(mapping(item.get("metadata")).get("resourceVersion"))


def _build_version(item: Object) -> _ObjectVersion:
    metadata = mapping(item.get("metadata"))
    remains: Object = {
        **{field: item[field] for field in ("apiVersion", "kind") if field in item},
        "metadata": {field: metadata[field] for field in _IDENTITY_FIELDS if field in metadata},
    }
    return _ObjectVersion(string(metadata.get("uid")), version_of(item), remains)
