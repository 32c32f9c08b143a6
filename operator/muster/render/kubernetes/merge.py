"""Partial pods, one over the other: what two of them say both holds, and where they contradict, the later one wins.

As in Kubernetes' own strategic merge, the field that a list belongs to says how its entries meet. Two differences:
lists without a name for their entries grow instead of being replaced, so that no tolerations are lost; and null
takes a single value away, but no list and no object: who leaves `resources:` empty does not mean to lose them.
"""

import posixpath
from collections import deque
from collections.abc import Hashable, Iterable
from functools import reduce

from muster.api.document import JSON

Fields = dict[str, JSON]
"""An object of JSON with its fields."""

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
"""Lists whose entries are known by these fields: equal ones are one entry."""

_WHOLE = frozenset({"command", "args"})
"""A command line is one thing: half of one and half of another start nothing."""

_DEFAULTS: dict[str, JSON] = {"protocol": "TCP"}
"""What an entry means that leaves the field out."""

_PATHS = frozenset({"mountPath", "devicePath"})


def merge(below: Fields, above: Fields) -> Fields:
    """`below` with all that `above` says; neither is changed."""
    return _Merge().fields(below, above)


def merge_all(parts: Iterable[Fields]) -> Fields:
    """One out of several, each over those before it."""
    return reduce(_Merge().fields, parts, {})


def entry_key(name: str, entry: JSON) -> str | None:
    """What the entry of list `name` is known by; None when nothing tells it from others."""
    fields = KEYS.get(name)
    if fields is None or not isinstance(entry, dict) or entry.get(fields[0]) is None:
        return None
    return ",".join(str(_key_part(entry, field)) for field in fields)


def _key_part(entry: Fields, field: str) -> JSON:
    value = entry.get(field)
    if field in _PATHS and isinstance(value, str):
        return posixpath.normpath(value)  # /data and /data/ are one place
    return _DEFAULTS.get(field, "") if value is None else value


class _Merge:
    """Merging of parts, one after the other.

    What an entry of a list is known by is found once: a pod has fifty parts, and its owner's lists may have thousands
    of entries.
    """

    def __init__(self) -> None:
        # with the entries themselves: nothing else may get the place in memory that tells them apart
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
        if name in _WHOLE:
            return list(above)
        result = list(below)
        places = self._places(name, below)
        allowed: set[Hashable] | None = None
        for entry in above:
            added = self._value("", None, entry)
            key = entry_key(name, added)
            if key is not None and places.get(key):
                # what stands twice in one list stays twice: the API server knows what it makes of that
                place = places[key].popleft()
                result[place] = self._entry(name, result[place], entry)
            elif key is not None:
                result.append(added)
            else:
                allowed = {self._exactly(entry) for entry in below} if allowed is None else allowed
                if self._exactly(added) not in allowed:
                    result.append(added)
        return result

    def _entry(self, name: str, below: JSON, above: JSON) -> JSON:
        if name == "env":
            # a variable is its name and one value: half of `value` and half of `valueFrom` is none
            return self._value("", None, above)
        if name == "volumes":
            # a volume has exactly one source: the same one may be said in more detail, another one takes its place
            same = isinstance(below, dict) and isinstance(above, dict) and not above.keys() - below.keys()
            return self._value("", below if same else None, above)
        return self._value("", below, above)

    def _places(self, name: str, entries: list[JSON]) -> dict[str, deque[int]]:
        places: dict[str, deque[int]] = {}
        if name in KEYS:
            for place, entry in enumerate(entries):
                key = self._key(name, entry)
                if key is not None:
                    places.setdefault(key, deque()).append(place)
        return places

    def _key(self, name: str, entry: JSON) -> str | None:
        current = self._keys.get((name, id(entry)))
        if current is None:
            current = self._keys[name, id(entry)] = (entry, entry_key(name, entry))
        return current[1]

    def _exactly(self, entry: JSON) -> Hashable:
        current = self._exact.get(id(entry))
        if current is None:
            current = self._exact[id(entry)] = (entry, _exact_form(entry))
        return current[1]


def _exact_form(value: JSON) -> Hashable:
    """Equal for values that are equal as JSON: to Python, 1 and true are, too."""
    if isinstance(value, dict):
        return frozenset((name, _exact_form(item)) for name, item in value.items())
    if isinstance(value, list):
        return tuple(_exact_form(item) for item in value)
    return type(value), value
