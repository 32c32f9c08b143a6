"""Prints the fields of a pod's spec with their types as JSON, from the official client. It needs no cluster.

`muster.api.validation.rules.pods.schema` describes the format of the types.
"""

from __future__ import annotations

import json
import re
import sys

from kubernetes.client import models

ROOT = "PodSpec"

SCALARS = {"str": "text", "int": "integer", "bool": "boolean", "datetime": "text"}

QUANTITIES = {
    "EmptyDirVolumeSource": ("sizeLimit",),
    "PodSpec": ("overhead",),
    "ResourceFieldSelector": ("divisor",),
    "ResourceRequirements": ("limits", "requests"),
    "VolumeResourceRequirements": ("limits", "requests"),
}
"""Fields that are text in the client. The API server also accepts numbers."""

UNTYPED = {("HTTPGetAction", "port"): "port", ("TCPSocketAction", "port"): "port"}
"""Fields without a type in the client. The API server accepts a number or a port's name."""

_RELEASE = re.compile(r"OpenAPI document: release-(\d+\.\d+)")


def main() -> int:
    """Print the file."""
    types: dict[str, dict[str, str]] = {}
    pending = [ROOT]
    while pending:
        name = pending.pop()
        if name not in types:
            types[name] = _list_fields(name)
            pending += [word for kind in types[name].values() for word in re.findall(r"[A-Z]\w+", kind)]
    json.dump({"kubernetes": _find_release(), "types": dict(sorted(types.items()))}, sys.stdout, indent=1)
    print()
    return 0


def _list_fields(name: str) -> dict[str, str]:
    model = _find_model(name)
    kinds: dict[str, str] = model.__dict__["openapi_types"]
    names: dict[str, str] = model.__dict__["attribute_map"]
    return {
        field: _parse_type(name, field, kinds[key])
        for field, key in sorted((field, key) for key, field in names.items())
    }


def _parse_type(name: str, field: str, kind: str) -> str:
    if field in QUANTITIES.get(name, ()):
        return "{quantity}" if kind.startswith("Dict") else "quantity"
    if kind == "object":
        return UNTYPED.get((name, field), "anything")
    listed = re.fullmatch(r"List\[(\w+)\]", kind)
    if listed:
        return f"[{_convert_type_name(listed[1])}]"
    mapped = re.fullmatch(r"Dict\[str, (\w+)\]", kind)
    return f"{{{_convert_type_name(mapped[1])}}}" if mapped else _convert_type_name(kind)


def _convert_type_name(kind: str) -> str:
    return SCALARS.get(kind) or re.sub(r"^(?:V1|Core)(?:V1)?", "", kind)


def _find_model(name: str) -> type:
    result: type = next(vars(models)[prefix + name] for prefix in ("V1", "CoreV1") if hasattr(models, prefix + name))
    return result


def _find_release() -> str:
    match = _RELEASE.search(sys.modules[_find_model(ROOT).__module__].__doc__ or "")
    if match is None:
        raise SystemExit("the client's docstring has no release of Kubernetes")
    return match[1]


if __name__ == "__main__":
    sys.exit(main())
