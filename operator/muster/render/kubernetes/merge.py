"""Merge partial pods; on conflicts the later one wins.

As in Kubernetes' strategic merge, a list's field decides how to merge its entries. There are two differences.
Entries without a name are appended, so that tolerations are not lost. A null removes a single
value but no list or object, so that an empty `resources:` does not remove them.
"""

import posixpath
from collections import deque
from collections.abc import Hashable, Iterable
from functools import reduce

from muster.api.document import JSON

Fields = dict[str, JSON]
"""A JSON object."""

KEYS: dict[str, tuple[str, ...]] = {
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
"""Key fields of lists: entries with equal keys are merged."""

_REPLACED_LISTS = frozenset({"command", "args"})
"""Lists that are replaced as a whole, because parts of two command lines make no sense."""

_DEFAULTS: dict[str, JSON] = {"protocol": "TCP"}
"""Defaults of key fields."""

_PATHS = frozenset({"mountPath", "devicePath"})


def merge(below: Fields, above: Fields) -> Fields:
    """Return `below` with the fields of `above`; neither is changed."""
    return _Merge().fields(below, above)


def merge_all(parts: Iterable[Fields]) -> Fields:
    """Merge several partial pods in order."""
    return reduce(_Merge().fields, parts, {})


def entry_key(name: str, entry: JSON) -> str | None:
    """The key of an entry of list `name`; None if it has none."""
    fields = KEYS.get(name)
    if fields is None or not isinstance(entry, dict) or entry.get(fields[0]) is None:
        return None
    return ",".join(str(_key_part(entry, field)) for field in fields)


def _key_part(entry: Fields, field: str) -> JSON:
    value = entry.get(field)
    if field in _PATHS and isinstance(value, str):
        return posixpath.normpath(value)  # /data and /data/ are the same path
    return _DEFAULTS.get(field, "") if value is None else value


class _Merge:
    """Merges a series of partial pods.

    Caches the keys of list entries, because a pod has fifty parts and its owner's lists may have thousands of entries.
    """

    def __init__(self) -> None:
        # The cache is keyed by id(), so it keeps the entries alive to prevent reused ids.
        self._keys: dict[tuple[str, int], tuple[JSON, str | None]] = {}
        self._exact: dict[int, tuple[JSON, Hashable]] = {}

    def fields(self, below: Fields, above: Fields) -> Fields:
        result = dict(below)
        for name, value in above.items():
            if value is None and not isinstance(result.get(name), dict | list):
                result.pop(name, None)
            elif value is None:
                continue
            else:
                result[name] = self._value(name, result.get(name), value)
        return result

    def _value(self, name: str, below: JSON, above: JSON) -> JSON:
        if isinstance(above, dict):
            return self.fields(below if isinstance(below, dict) else {}, above)
        if isinstance(above, list):
            return self._list(name, below if isinstance(below, list) else [], above)
        return above

    def _list(self, name: str, below: list[JSON], above: list[JSON]) -> list[JSON]:
        if name in _REPLACED_LISTS:
            return list(above)
        result = list(below)
        positions = self._places(name, below)
        existing: set[Hashable] | None = None
        for entry in above:
            added = self._value("", None, entry)
            key = entry_key(name, added)
            if key is not None and positions.get(key):
                # Duplicates within one list stay, so that the API server can reject them.
                position = positions[key].popleft()
                result[position] = self._entry(name, result[position], entry)
            elif key is not None:
                result.append(added)
            else:
                existing = {self._exact_value(entry) for entry in below} if existing is None else existing
                if self._exact_value(added) not in existing:
                    result.append(added)
        return result

    def _entry(self, name: str, below: JSON, above: JSON) -> JSON:
        if name == "env":
            # A variable has one value: never mix `value` and `valueFrom`.
            return self._value("", None, above)
        if name == "volumes":
            # A volume has exactly one source: merge details of the same source, but replace it by another one.
            same = isinstance(below, dict) and isinstance(above, dict) and not above.keys() - below.keys()
            return self._value("", below if same else None, above)
        return self._value("", below, above)

    def _places(self, name: str, entries: list[JSON]) -> dict[str, deque[int]]:
        positions: dict[str, deque[int]] = {}
        if name in KEYS:
            for position, entry in enumerate(entries):
                key = self._key(name, entry)
                if key is not None:
                    positions.setdefault(key, deque()).append(position)
        return positions

    def _key(self, name: str, entry: JSON) -> str | None:
        current = self._keys.get((name, id(entry)))
        if current is None:
            current = self._keys[name, id(entry)] = (entry, entry_key(name, entry))
        return current[1]

    def _exact_value(self, entry: JSON) -> Hashable:
        current = self._exact.get(id(entry))
        if current is None:
            current = self._exact[id(entry)] = (entry, _exact_form(entry))
        return current[1]


def _exact_form(value: JSON) -> Hashable:
    """A hashable form of a JSON value that, unlike in Python, distinguishes 1 from true."""
    if isinstance(value, dict):
        return frozenset((name, _exact_form(item)) for name, item in value.items())
    if isinstance(value, list):
        return tuple(_exact_form(item) for item in value)
    return type(value), value
