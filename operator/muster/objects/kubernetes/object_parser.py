"""Parse objects of the API server, without the fields that muster doesn't need. Pure.

The parser omits parts that are invalid or too long, and lists them in the parsed object. So a bad part affects neither
the rest of the object nor other objects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

from muster.api.document import JSON
from muster.objects.kubernetes.json_parts import MalformedJson, Part, find_value
from muster.objects.kubernetes.kinds import Object, ParseOptions

MISSING_PARTS = "muster.dev/leftOut"
"""The key of a parsed object that lists its missing parts, with the reason for each path."""

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""The annotation in which kubectl stores a copy of the whole object."""

_IDENTITY = ("name", "namespace", "uid", "resourceVersion")

_SHORT_BYTES = 256
"""Shorter fields, such as `kind` and `apiVersion`, are always kept."""


def read_object(part: Part, parse_options: ParseOptions) -> Object:
    """Parse an object. Raises `MalformedJson`."""
    if not part.contains(parse_options.required_text):
        return {"metadata": dict(_parse_identity(part)), MISSING_PARTS: {"": "it does not belong to muster"}}
    whole = part.parse_whole(parse_options.whole_bytes) if parse_options.whole_bytes else None
    if isinstance(whole, dict) and isinstance(whole.get("metadata"), dict):
        return dict(_select_fields(whole, parse_options))
    missing_parts: dict[str, JSON] = {}
    result: dict[str, JSON] = {}
    for name, member in part.iterate_members():
        if name == "metadata":
            result[name] = _parse_metadata(member, parse_options, missing_parts)
        elif member.size <= _SHORT_BYTES or parse_options.parts is None or name in parse_options.parts:
            _add_field(result, missing_parts, (name, name), member, parse_options)
    return {**result, MISSING_PARTS: missing_parts} if missing_parts else result


def _select_fields(parsed_object: dict[str, JSON], parse_options: ParseOptions) -> Iterator[tuple[str, JSON]]:
    """Yield the fields that the options keep."""
    for name, value in parsed_object.items():
        if name == "metadata" and isinstance(value, dict):
            kept = value.keys() - {"managedFields"} if parse_options.metadata is None else parse_options.metadata
            yield name, _drop_last_applied({key: field for key, field in value.items() if key in kept})
        elif isinstance(value, str) or parse_options.parts is None or name in parse_options.parts:
            yield name, value


def read_missing_parts(source: Object) -> Mapping[str, str]:
    """Return the paths of an object's missing parts, with reasons. Path "" means that only the identity was parsed."""
    missing = source.get(MISSING_PARTS)
    return {path: str(reason) for path, reason in missing.items()} if isinstance(missing, dict) else {}


def keep_identity(source: Object, reason: str) -> Object:
    """Return the identity of an object, and the reason why its other fields are missing."""
    metadata = source.get("metadata")
    result = metadata if isinstance(metadata, dict) else {}
    return {"metadata": {name: result[name] for name in _IDENTITY if name in result}, MISSING_PARTS: {"": reason}}


def parse_json(text: bytes) -> JSON:
    """Parse a text with one JSON value. Raises `NestingTooDeep` and `MalformedJson`."""
    part = find_value(text)
    if text[part.end :].strip():
        raise MalformedJson(f"something follows the value at byte {part.end}")
    return part.parse()


def _parse_metadata(part: Part, parse_options: ParseOptions, missing_parts: dict[str, JSON]) -> dict[str, JSON]:
    result: dict[str, JSON] = {}
    for name, member in part.iterate_members():
        if name == "annotations" and parse_options.annotations is not None:
            result[name] = _parse_annotations(member, parse_options.annotations)
        elif name != "managedFields" and (parse_options.metadata is None or name in parse_options.metadata):
            _add_field(result, missing_parts, (name, f"metadata.{name}"), member, parse_options)
    return _drop_last_applied(result)


def _drop_last_applied(metadata: dict[str, JSON]) -> dict[str, JSON]:
    annotations = metadata.get("annotations")
    if isinstance(annotations, dict):
        annotations.pop(LAST_APPLIED, None)
    return metadata


def _parse_annotations(part: Part, max_chars_by_name: Mapping[str, int]) -> dict[str, JSON]:
    """Return the annotations that the options keep.

    Omit an unreadable annotation, because it must not affect the rest of the object.
    """
    result: dict[str, JSON] = {}
    with suppress(ValueError):
        for name, member in part.iterate_members():
            value = member.parse() if name in max_chars_by_name else None
            if isinstance(value, str):
                result[name] = value[: max_chars_by_name[name]]
    return result


def _add_field(
    result: dict[str, JSON],
    missing_parts: dict[str, JSON],
    names: tuple[str, str],
    part: Part,
    parse_options: ParseOptions,
) -> None:
    name, path = names
    max_bytes = parse_options.max_bytes.get(path)
    if max_bytes is not None and part.size > max_bytes:
        missing_parts[path] = f"found {part.size} bytes, which are too many"
        return
    try:
        result[name] = part.get_text().decode() if name in parse_options.text_fields else part.parse()
    except ValueError as problem:
        missing_parts[path] = str(problem)


def _parse_identity(part: Part) -> Iterator[tuple[str, JSON]]:
    """Yield name, namespace, uid and resource version. Don't parse the fields after them."""
    metadata = next((member for name, member in part.iterate_members() if name == "metadata"), None)
    if metadata is None:
        raise MalformedJson("an object has no metadata")
    missing = set(_IDENTITY)
    for name, member in metadata.iterate_members():
        if name in missing:
            missing.remove(name)
            yield name, member.parse()
        if not missing:
            return
