"""Find lists and maps of a spec that are too long, before their entries are validated.

pydantic's limit counts only valid entries, so it would report each entry of a long invalid list.
"""

from collections.abc import Mapping

from muster.api.document import JSON, FieldPath
from muster.api.json_fields import mapping
from muster.api.schema import spec_schema

LengthProblem = tuple[FieldPath, str]
"""The path and the message."""


def truncate_lists(spec: dict[str, JSON]) -> tuple[dict[str, JSON], list[LengthProblem]]:
    """Truncate each list and map of the spec to its maximum length; return the spec and the problems."""
    too_long: list[LengthProblem] = []
    return mapping(_truncate(spec, spec_schema(), ("spec",), too_long)), too_long


def _truncate(value: JSON, schema: Mapping[str, JSON], path: FieldPath, too_long: list[LengthProblem]) -> JSON:
    if isinstance(value, list):
        truncated = value[: _check_length(schema, "maxItems", len(value), path, too_long)]
        below = mapping(schema.get("items"))
        return (
            [_truncate(item, below, (*path, index), too_long) for index, item in enumerate(truncated)]
            if below
            else truncated
        )
    if isinstance(value, dict):
        maximum = _check_length(schema, "maxProperties", len(value), path, too_long)
        entry, additional = mapping(schema.get("properties")), mapping(schema.get("additionalProperties"))
        return {
            key: _truncate(item, mapping(entry.get(key)) or additional, (*path, key), too_long)
            for key, item in list(value.items())[:maximum]
        }
    return value


def _check_length(
    schema: Mapping[str, JSON], limit: str, count: int, path: FieldPath, too_long: list[LengthProblem]
) -> int:
    """Return how many of `count` entries to validate; append a problem if there are more than allowed."""
    maximum = schema.get(limit)
    if not isinstance(maximum, int) or count <= maximum:
        return count
    too_long.append((path, f"found {count} entries; at most {maximum} are allowed"))
    return maximum
