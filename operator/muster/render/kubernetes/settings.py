"""Flatten a partial pod to single settings by path."""

import json

from muster.api.document import JSON
from muster.render.kubernetes.merge import KEYS, Fields, entry_key

_LEAVES = frozenset({"volumes", "volumeMounts", "env", "ports", "schedulingGates", "imagePullSecrets"})
"""Lists whose entries stay one setting."""

LISTED = "[]="
"""Separates a list's path from an entry without a name, so that each entry has its own path."""


def settings(fields: Fields) -> dict[str, JSON]:
    """Every setting by its path, such as `spec.containers[trainer].image`. Equal pods have equal settings."""
    result: dict[str, JSON] = {}
    for name, value in fields.items():
        result.update(_flatten(name, name, value))
    return result


def _flatten(path: str, name: str, value: JSON) -> dict[str, JSON]:
    if isinstance(value, dict) and value:
        return {
            deeper: setting
            for key, inner in value.items()
            for deeper, setting in _flatten(f"{path}.{key}", key, inner).items()
        }
    if isinstance(value, list) and name not in {"command", "args"}:
        return {deeper: setting for entry in value for deeper, setting in _flatten_entry(path, name, entry).items()}
    return {path: value}


def _flatten_entry(path: str, name: str, entry: JSON) -> dict[str, JSON]:
    key = entry_key(name, entry)
    if key is None or not isinstance(entry, dict):
        return {f"{path}{LISTED}{json.dumps(entry, sort_keys=True)}": entry}
    entry_path = f"{path}[{key}]"
    values = {field: value for field, value in entry.items() if field not in KEYS[name]}
    if name in _LEAVES:
        return {entry_path: values}
    return {
        deeper: setting
        for each, value in values.items()
        for deeper, setting in _flatten(f"{entry_path}.{each}", each, value).items()
    }
