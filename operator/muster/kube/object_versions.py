"""Which objects there are, as lists and watches tell it, and what is new in what they tell. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from muster.api.json_fields import mapping, string
from muster.kube.client import Change
from muster.kube.kinds import Object
from muster.kube.reading import left_out

# What finds an object's owner in an index; the rest of it is not kept, for there may be many thousands.
_KEPT = ("name", "namespace", "uid", "resourceVersion", "ownerReferences")


@dataclass(frozen=True)
class _ObjectVersion:
    uid: str
    version: str
    remains: Object


class ObjectVersions:
    """The objects of one kind in one place. Takes what is told, in order; gives what is new in it."""

    remembers: Final = True

    def __init__(self) -> None:
        self._objects: dict[tuple[str, str], _ObjectVersion] = {}

    def take(self, change: Change) -> tuple[Change, ...]:
        """The changes that follow; none when it's known already. An object that vanished unseen is told as DELETED."""
        place, now = key(change.object), _version_of(change.object)
        before = self._objects.get(place)
        if change.type == "DELETED":
            if before is None or before.uid != now.uid:
                return ()
            del self._objects[place]
            return (change,)
        if is_identity_only(change.object):
            # It is no more than that of which nothing has to be known, whatever it was.
            self._objects.pop(place, None)
            return () if before is None else (Change("MODIFIED", change.object),)
        self._objects[place] = now
        if before is None:
            return (Change("ADDED", change.object),)
        if before.uid != now.uid:
            return (Change("DELETED", before.remains), Change("ADDED", change.object))
        return () if before.version == now.version else (Change("MODIFIED", change.object),)

    def keep_only(self, visited: frozenset[tuple[str, str]]) -> tuple[Change, ...]:
        """Forget all that a complete list hasn't: of each, its metadata is told as DELETED."""
        vanished = [place for place in self._objects if place not in visited]
        return tuple(Change("DELETED", self._objects.pop(place).remains) for place in vanished)


class Untracked:
    """In the place of `ObjectVersions`, for objects of which any number may come and go: all that is told is new."""

    remembers: Final = False

    def take(self, change: Change) -> tuple[Change, ...]:
        """The change itself."""
        return () if is_identity_only(change.object) else (change,)

    def keep_only(self, _: frozenset[tuple[str, str]]) -> tuple[Change, ...]:
        """Nothing was kept."""
        return ()


def key(item: Object) -> tuple[str, str]:
    """Namespace and name."""
    metadata = mapping(item.get("metadata"))
    return string(metadata.get("namespace")), string(metadata.get("name"))


def is_identity_only(item: Object) -> bool:
    """Whether nothing else was read of the object."""
    return "" in left_out(item)


def uid(item: Object) -> str:
    """The object's uid."""
    return string(mapping(item.get("metadata")).get("uid"))


def version(item: Object) -> str:
    """The object's resourceVersion."""
    return string(mapping(item.get("metadata")).get("resourceVersion"))


def _version_of(item: Object) -> _ObjectVersion:
    metadata = mapping(item.get("metadata"))
    remains: Object = {
        **{field: item[field] for field in ("apiVersion", "kind") if field in item},
        "metadata": {field: metadata[field] for field in _KEPT if field in metadata},
    }
    return _ObjectVersion(string(metadata.get("uid")), version(item), remains)
