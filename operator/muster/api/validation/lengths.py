"""Find lists and maps of a spec that are too long, before their entries are validated.

pydantic's limit counts valid entries only: for a long list of invalid entries it would report each one.
"""

from collections.abc import Mapping

from muster.api.document import JSON, Path
from muster.api.json_fields import mapping
from muster.api.schema import spec_schema

TooLong = tuple[Path, str]
"""The path and the message."""


def cut(spec: dict[str, JSON]) -> tuple[dict[str, JSON], list[TooLong]]:
    """Cut each list and map of the spec to its maximum length; return the spec and what was too long."""
    too_long: list[TooLong] = []
    return mapping(_cut(spec, spec_schema(), ("spec",), too_long)), too_long


def _cut(value: JSON, schema: Mapping[str, JSON], path: Path, too_long: list[TooLong]) -> JSON:
    if isinstance(value, list):
        kept = value[: _most(schema, "maxItems", len(value), path, too_long)]
        below = mapping(schema.get("items"))
        return [_cut(item, below, (*path, index), too_long) for index, item in enumerate(kept)] if below else kept
    if isinstance(value, dict):
        most = _most(schema, "maxProperties", len(value), path, too_long)
        entry, others = mapping(schema.get("properties")), mapping(schema.get("additionalProperties"))
        return {
            key: _cut(item, mapping(entry.get(key)) or others, (*path, key), too_long)
            for key, item in list(value.items())[:most]
        }
    return value


def _most(schema: Mapping[str, JSON], limit: str, count: int, path: Path, too_long: list[TooLong]) -> int:
    """How many of `count` entries to look at."""
    most = schema.get(limit)
    if not isinstance(most, int) or count <= most:
        return count
    too_long.append((path, f"found {count} entries; at most {most} are allowed"))
    return most
