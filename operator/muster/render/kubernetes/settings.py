"""Flatten a pod: list each of its settings by path."""

import json

from muster.api.document import JSON
from muster.render.kubernetes.merge import MERGE_KEYS, Fields, get_entry_key

_LEAVES = frozenset({"volumes", "volumeMounts", "env", "ports", "schedulingGates", "imagePullSecrets"})
"""Lists in which each entry is one setting."""

ENTRY_SEPARATOR = "[]="
"""The separator between the path of a list and an entry without a key. The path ends with the entry itself."""


def flatten_settings(fields: Fields) -> dict[str, JSON]:
    """Return all settings by path, such as `spec.containers[trainer].image`."""
    result: dict[str, JSON] = {}
    for name, value in fields.items():
        result.update(_flatten(name, name, value))
    return result


def _flatten(path: str, name: str, value: JSON) -> dict[str, JSON]:
    if isinstance(value, dict) and value:
        return {
            setting_path: setting
            for key, item in value.items()
            for setting_path, setting in _flatten(f"{path}.{key}", key, item).items()
        }
    if isinstance(value, list) and name not in {"command", "args"}:
        return {
            setting_path: setting
            for entry in value
            for setting_path, setting in _flatten_entry(path, name, entry).items()
        }
    return {path: value}


def _flatten_entry(path: str, name: str, entry: JSON) -> dict[str, JSON]:
    key = get_entry_key(name, entry)
    if key is None or not isinstance(entry, dict):
        return {f"{path}{ENTRY_SEPARATOR}{json.dumps(entry, sort_keys=True)}": entry}
    entry_path = f"{path}[{key}]"
    values = {field: value for field, value in entry.items() if field not in MERGE_KEYS[name]}
    if name in _LEAVES:
        return {entry_path: values}
    return {
        setting_path: setting
        for field_name, value in values.items()
        for setting_path, setting in _flatten(f"{entry_path}.{field_name}", field_name, value).items()
    }
