"""Merge partial pods. Later values override earlier values.

Lists are merged by the keys of their entries, as in Kubernetes' strategic merge, with two differences. Entries without
a key are appended, so that tolerations are not lost. A null removes a single value, but not a list or an object, so
that an empty `resources:` doesn't remove the resources.
"""

import posixpath
from collections import deque
from collections.abc import Hashable, Iterable
from functools import reduce

from muster.api.document import JSON

Fields = dict[str, JSON]
"""A JSON object."""

MERGE_KEYS: dict[str, tuple[str, ...]] = {
    "containers": ("name",),
    "initContainers": ("name",),
    "volumes": ("name",),
    "env": ("name",),
    "imagePullSecrets": ("name",),
    "resourceClaims": ("name",),
    "claims": ("name", "request"),
    "options": ("name",),
    "sysctls": ("name",),
    "schedulingGates": ("name",),
    "volumeMounts": ("mountPath",),
    "volumeDevices": ("devicePath",),
    "ports": ("containerPort", "protocol"),
    "hostAliases": ("ip",),
    "readinessGates": ("conditionType",),
    "resizePolicy": ("resourceName",),
}
"""The fields that are the keys of lists' entries. Entries with equal keys are merged."""

_REPLACED_LISTS = frozenset({"command", "args"})
"""Lists that are replaced as a whole, because command lines can't be merged."""

_DEFAULTS: dict[str, JSON] = {"protocol": "TCP"}
"""The default values of key fields."""

_PATHS = frozenset({"mountPath", "devicePath"})


def merge(base: Fields, patch: Fields) -> Fields:
    """Return a copy of `base` with the fields of `patch`."""
    return _Merger().merge_fields(base, patch)


def merge_all(parts: Iterable[Fields]) -> Fields:
    """Merge several partial pods in order."""
    return reduce(_Merger().merge_fields, parts, {})


def get_entry_key(name: str, entry: JSON) -> str | None:
    """Return the key of an entry of list `name`; None without one."""
    fields = MERGE_KEYS.get(name)
    if fields is None or not isinstance(entry, dict) or entry.get(fields[0]) is None:
        return None
    return ",".join(str(_get_key_part(entry, field)) for field in fields)


def _get_key_part(entry: Fields, field: str) -> JSON:
    value = entry.get(field)
    if field in _PATHS and isinstance(value, str):
        return posixpath.normpath(value)  # /data and /data/ are the same path
    return _DEFAULTS.get(field, "") if value is None else value


class _Merger:
    """Merges a series of partial pods.

    It caches the keys of list entries: a pod has fifty patches, and the user's lists may have thousands of entries.
    """

    def __init__(self) -> None:
        # The keys are ids of objects. The cache refers to the objects, so that their ids are not reused.
        self._keys: dict[tuple[str, int], tuple[JSON, str | None]] = {}
        self._hashables: dict[int, tuple[JSON, Hashable]] = {}

    def merge_fields(self, base: Fields, patch: Fields) -> Fields:
        result = dict(base)
        for name, value in patch.items():
            if value is None and not isinstance(result.get(name), dict | list):
                result.pop(name, None)
            elif value is None:
                continue
            else:
                result[name] = self._merge_value(name, result.get(name), value)
        return result

    def _merge_value(self, name: str, base: JSON, patch: JSON) -> JSON:
        if isinstance(patch, dict):
            return self.merge_fields(base if isinstance(base, dict) else {}, patch)
        if isinstance(patch, list):
            return self._merge_lists(name, base if isinstance(base, list) else [], patch)
        return patch

    def _merge_lists(self, name: str, base: list[JSON], patch: list[JSON]) -> list[JSON]:
        if name in _REPLACED_LISTS:
            return list(patch)
        result = list(base)
        positions = self._find_positions(name, base)
        existing: set[Hashable] | None = None
        for entry in patch:
            entry_copy = self._merge_value("", None, entry)
            key = get_entry_key(name, entry_copy)
            if key is not None and positions.get(key):
                # Keep duplicates within one list, so that the API server can reject them.
                position = positions[key].popleft()
                result[position] = self._merge_entry(name, result[position], entry)
            elif key is not None:
                result.append(entry_copy)
            else:
                existing = {self._get_hashable(entry) for entry in base} if existing is None else existing
                if self._get_hashable(entry_copy) not in existing:
                    result.append(entry_copy)
        return result

    def _merge_entry(self, name: str, base: JSON, patch: JSON) -> JSON:
        if name == "env":
            # A variable has one value: never mix `value` and `valueFrom`.
            return self._merge_value("", None, patch)
        if name == "volumes":
            # A volume has exactly one source: merge the same kind of source, and replace another kind.
            has_same_source = isinstance(base, dict) and isinstance(patch, dict) and not patch.keys() - base.keys()
            return self._merge_value("", base if has_same_source else None, patch)
        return self._merge_value("", base, patch)

    def _find_positions(self, name: str, entries: list[JSON]) -> dict[str, deque[int]]:
        positions: dict[str, deque[int]] = {}
        if name in MERGE_KEYS:
            for position, entry in enumerate(entries):
                key = self._get_key(name, entry)
                if key is not None:
                    positions.setdefault(key, deque()).append(position)
        return positions

    def _get_key(self, name: str, entry: JSON) -> str | None:
        current = self._keys.get((name, id(entry)))
        if current is None:
            current = self._keys[name, id(entry)] = (entry, get_entry_key(name, entry))
        return current[1]

    def _get_hashable(self, entry: JSON) -> Hashable:
        current = self._hashables.get(id(entry))
        if current is None:
            current = self._hashables[id(entry)] = (entry, _make_hashable(entry))
        return current[1]


def _make_hashable(value: JSON) -> Hashable:
    """Return a hashable form of a JSON value. Unlike Python, it distinguishes 1 from true."""
    if isinstance(value, dict):
        return frozenset((name, _make_hashable(item)) for name, item in value.items())
    if isinstance(value, list):
        return tuple(_make_hashable(item) for item in value)
    return type(value), value
