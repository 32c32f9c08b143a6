"""Prints the fields of a pod's spec with their types as JSON, from the official client, without a cluster.

The format of the types is that of `muster.api.validation.rules.pods.schema`.
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
"""Text in the client. The API server also accepts numbers."""

UNTYPED = {("HTTPGetAction", "port"): "port", ("TCPSocketAction", "port"): "port"}
"""Untyped in the client. The API server accepts a number or a port's name."""

_RELEASE = re.compile(r"OpenAPI document: release-(\d+\.\d+)")


def main() -> int:
    """Print the file."""
    types: dict[str, dict[str, str]] = {}
    waiting = [ROOT]
    while waiting:
        name = waiting.pop()
        if name not in types:
            types[name] = _fields(name)
            waiting += [word for kind in types[name].values() for word in re.findall(r"[A-Z]\w+", kind)]
    json.dump({"kubernetes": _release(), "types": dict(sorted(types.items()))}, sys.stdout, indent=1)
    print()
    return 0


def _fields(name: str) -> dict[str, str]:
    model = _model(name)
    kinds: dict[str, str] = model.__dict__["openapi_types"]
    names: dict[str, str] = model.__dict__["attribute_map"]
    return {
        field: _kind(name, field, kinds[key]) for field, key in sorted((field, key) for key, field in names.items())
    }


def _kind(name: str, field: str, kind: str) -> str:
    if field in QUANTITIES.get(name, ()):
        return "{quantity}" if kind.startswith("Dict") else "quantity"
    if kind == "object":
        return UNTYPED.get((name, field), "anything")
    listed = re.fullmatch(r"List\[(\w+)\]", kind)
    if listed:
        return f"[{_name(listed[1])}]"
    mapped = re.fullmatch(r"Dict\[str, (\w+)\]", kind)
    return f"{{{_name(mapped[1])}}}" if mapped else _name(kind)


def _name(kind: str) -> str:
    return SCALARS.get(kind) or re.sub(r"^(?:V1|Core)(?:V1)?", "", kind)


def _model(name: str) -> type:
    result: type = next(vars(models)[prefix + name] for prefix in ("V1", "CoreV1") if hasattr(models, prefix + name))
    return result


def _release() -> str:
    match = _RELEASE.search(sys.modules[_model(ROOT).__module__].__doc__ or "")
    if match is None:
        raise SystemExit("the client doesn't say which release of Kubernetes it is of")
    return match[1]


if __name__ == "__main__":
    sys.exit(main())
