"""Truncate the lists and maps of a spec that are too long, before pydantic validates their entries.

Otherwise pydantic would report every entry of a long invalid list, because its length limit counts only valid entries.
"""

from collections.abc import Mapping

from muster.api.document import JSON, FieldPath
from muster.api.json_fields import read_mapping
from muster.api.schema import build_spec_schema

LengthProblem = tuple[FieldPath, str]
"""A field's path and the message about its length."""


def truncate_lists(spec: dict[str, JSON]) -> tuple[dict[str, JSON], list[LengthProblem]]:
    """Truncate each list and map of the spec to its maximum length; return the spec and the problems."""
    problems: list[LengthProblem] = []
    return read_mapping(_truncate(spec, build_spec_schema(), ("spec",), problems)), problems


def _truncate(value: JSON, schema: Mapping[str, JSON], path: FieldPath, problems: list[LengthProblem]) -> JSON:
    if isinstance(value, list):
        truncated = value[: _check_length(schema, "maxItems", len(value), path, problems)]
        item_schema = read_mapping(schema.get("items"))
        return (
            [_truncate(item, item_schema, (*path, index), problems) for index, item in enumerate(truncated)]
            if item_schema
            else truncated
        )
    if isinstance(value, dict):
        maximum = _check_length(schema, "maxProperties", len(value), path, problems)
        entry, additional = read_mapping(schema.get("properties")), read_mapping(schema.get("additionalProperties"))
        return {
            key: _truncate(item, read_mapping(entry.get(key)) or additional, (*path, key), problems)
            for key, item in list(value.items())[:maximum]
        }
    return value


def _check_length(
    schema: Mapping[str, JSON], limit: str, count: int, path: FieldPath, problems: list[LengthProblem]
) -> int:
    """Return how many of `count` entries to validate; append a problem if there are more than allowed."""
    maximum = schema.get(limit)
    if not isinstance(maximum, int) or count <= maximum:
        return count
    problems.append((path, f"found {count} entries; at most {maximum} are allowed"))
    return maximum
