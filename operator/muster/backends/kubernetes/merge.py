"""Partial pods, one over the other: what two of them say both holds, and where they contradict, the later one wins.

As in Kubernetes' own strategic merge, the field that a list belongs to says how its entries meet. Two differences:
lists without a name for their entries grow instead of being replaced, so that nobody's tolerations are lost; and null
takes a single value away, but no list and no object: who leaves `resources:` empty does not mean to lose them.
"""

import json
import posixpath
from collections.abc import Callable

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
    result = dict(below)
    for name, value in above.items():
        if value is None and not isinstance(result.get(name), dict | list):
            result.pop(name, None)
        elif value is None:
            continue
        else:
            result[name] = _merged(name, result.get(name), value)
    return result


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


def _merged(name: str, below: JSON, above: JSON) -> JSON:
    if isinstance(above, dict):
        return merge(below if isinstance(below, dict) else {}, above)
    if isinstance(above, list):
        return _merged_lists(name, below if isinstance(below, list) else [], above)
    return above


def _merged_lists(name: str, below: list[JSON], above: list[JSON]) -> list[JSON]:
    if name in _WHOLE:
        return list(above)
    result = list(below)
    places = _places(name, below)
    known = {_exactly(entry) for entry in below}
    for entry in above:
        added = _merged("", None, entry)
        key = entry_key(name, added)
        if key is not None and places.get(key):
            # what stands twice in one list stays twice: the API server knows what it makes of that
            place = places[key].pop(0)
            result[place] = _ENTRY_MERGES.get(name, _merged_entries)(result[place], entry)
        elif key is not None or _exactly(added) not in known:
            result.append(added)
    return result


def _places(name: str, entries: list[JSON]) -> dict[str, list[int]]:
    places: dict[str, list[int]] = {}
    for place, entry in enumerate(entries):
        key = entry_key(name, entry)
        if key is not None:
            places.setdefault(key, []).append(place)
    return places


def _exactly(entry: JSON) -> str:
    return json.dumps(entry, sort_keys=True)  # to Python, 1 and true are equal


def _merged_entries(below: JSON, above: JSON) -> JSON:
    return _merged("", below, above)


def _later(below: JSON, above: JSON) -> JSON:  # noqa: ARG001 - it has the shape of the others
    # a variable is its name and one value: half of `value` and half of `valueFrom` is none
    return _merged("", None, above)


def _merged_volumes(below: JSON, above: JSON) -> JSON:
    # a volume has exactly one source: the same one may be said in more detail, another one takes its place
    same = isinstance(below, dict) and isinstance(above, dict) and not above.keys() - below.keys()
    return _merged("", below if same else None, above)


_ENTRY_MERGES: dict[str, Callable[[JSON, JSON], JSON]] = {"env": _later, "volumes": _merged_volumes}
