"""A partial pod as single settings, each with the place at which it stands."""

import json

from muster.api.document import JSON
from muster.render.kubernetes.merge import KEYS, Fields, entry_key

_LEAVES = frozenset({"volumes", "volumeMounts", "env", "ports", "schedulingGates", "imagePullSecrets"})
"""Lists whose entries are read as one thing."""

LISTED = "[]="
"""Between the path of a list and an entry that has no name: the entry itself, so that each has its own path."""


def settings(fields: Fields) -> dict[str, JSON]:
    """Every setting by its path, such as `spec.containers[trainer].image`; equal pods have equal settings."""
    result: dict[str, JSON] = {}
    for name, value in fields.items():
        result.update(_below(name, name, value))
    return result


def _below(path: str, name: str, value: JSON) -> dict[str, JSON]:
    if isinstance(value, dict) and value:
        return {
            deeper: setting
            for key, inner in value.items()
            for deeper, setting in _below(f"{path}.{key}", key, inner).items()
        }
    if isinstance(value, list) and name not in {"command", "args"}:
        return {deeper: setting for entry in value for deeper, setting in _entry(path, name, entry).items()}
    return {path: value}


def _entry(path: str, name: str, entry: JSON) -> dict[str, JSON]:
    key = entry_key(name, entry)
    if key is None or not isinstance(entry, dict):
        return {f"{path}{LISTED}{json.dumps(entry, sort_keys=True)}": entry}
    place = f"{path}[{key}]"
    rest = {field: value for field, value in entry.items() if field not in KEYS[name]}
    if name in _LEAVES:
        return {place: rest}
    return {
        deeper: setting
        for each, value in rest.items()
        for deeper, setting in _below(f"{place}.{each}", each, value).items()
    }
