"""Parse objects of the API server, without fields that muster doesn't need, and without harmful ones. Pure.

Parts that are invalid or too long are left out, and the object lists them: one bad part must not affect the rest
of its object, or other objects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from muster.api.document import JSON
from muster.objects.kubernetes.json_parts import Malformed, Part, value_in
from muster.objects.kubernetes.kinds import Object, Reading

LEFT_OUT = "muster.dev/leftOut"
"""A parsed object's key for missing parts: the reason, by path."""

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""The annotation in which kubectl keeps a copy of the whole object."""

_IDENTITY = ("name", "namespace", "uid", "resourceVersion")

_SHORT_BYTES = 256
"""`kind`, `apiVersion` and other short fields are always kept."""


def read_object(part: Part, reading: Reading) -> Object:
    """Parse an object. Raises `Malformed`."""
    if not part.has(reading.marker):
        return {"metadata": dict(_identity(part)), LEFT_OUT: {"": "it does not belong to muster"}}
    left_out: dict[str, JSON] = {}
    result: dict[str, JSON] = {}
    for name, member in part.members():
        if name == "metadata":
            result[name] = _metadata(member, reading, left_out)
        elif member.size <= _SHORT_BYTES or reading.parts is None or name in reading.parts:
            _add_field(result, left_out, (name, name), member, reading)
    return {**result, LEFT_OUT: left_out} if left_out else result


def left_out(source: Object) -> Mapping[str, str]:
    """The missing parts of a parsed object: the reason, by path. Path "" means that only the identity was parsed."""
    missing = source.get(LEFT_OUT)
    return {path: str(why) for path, why in missing.items()} if isinstance(missing, dict) else {}


def identity_only(source: Object, why: str) -> Object:
    """The identity of an object whose other fields are dropped, with the reason."""
    metadata = source.get("metadata")
    result = metadata if isinstance(metadata, dict) else {}
    return {"metadata": {name: result[name] for name in _IDENTITY if name in result}, LEFT_OUT: {"": why}}


def parsed(text: bytes) -> JSON:
    """Parse a text with one JSON value. Raises `TooDeep` and `Malformed`."""
    part = value_in(text)
    if text[part.end :].strip():
        raise Malformed(f"something follows the value at byte {part.end}")
    return part.value()


def _metadata(part: Part, reading: Reading, left_out: dict[str, JSON]) -> dict[str, JSON]:
    result: dict[str, JSON] = {}
    for name, member in part.members():
        if name != "managedFields" and (reading.metadata is None or name in reading.metadata):
            _add_field(result, left_out, (name, f"metadata.{name}"), member, reading)
    annotations = result.get("annotations")
    if isinstance(annotations, dict):
        annotations.pop(LAST_APPLIED, None)
    return result


def _add_field(
    result: dict[str, JSON], left_out: dict[str, JSON], names: tuple[str, str], part: Part, reading: Reading
) -> None:
    name, path = names
    max_bytes = reading.max_bytes.get(path)
    if max_bytes is not None and part.size > max_bytes:
        left_out[path] = f"found {part.size} bytes, which are too many"
        return
    try:
        result[name] = part.content().decode() if name in reading.as_text else part.value()
    except ValueError as problem:
        left_out[path] = str(problem)


def _identity(part: Part) -> Iterator[tuple[str, JSON]]:
    """Name, namespace, uid and version, without parsing the fields after them."""
    metadata = next((member for name, member in part.members() if name == "metadata"), None)
    if metadata is None:
        raise Malformed("an object has no metadata")
    missing = set(_IDENTITY)
    for name, member in metadata.members():
        if name in missing:
            missing.remove(name)
            yield name, member.value()
        if not missing:
            return
