"""docs/reference has a complete row for every field of the resource, with the schema's content."""

import re

import pytest

from muster.api.document import JSON
from muster.api.schema import Schema, build_spec_schema
from muster.api.status_schema import build_status_schema
from muster_dev.field_reference import render_page

SCHEMAS = {"spec": build_spec_schema, "status": build_status_schema}
BAR = re.compile(r"(?<!\\)\|")


def rows(part: str) -> dict[str, list[str]]:
    """Return the cells of each field's row, by the field's path."""
    lines = [BAR.split(line)[1:-1] for line in render_page(part).splitlines() if line.startswith("| `")]
    return {cells[0].strip(" `"): [cell.strip() for cell in cells[1:]] for cells in lines}


def paths(schema: Schema, path: str) -> set[str]:
    found: set[str] = set()
    properties = schema.get("properties")
    for name, child in properties.items() if isinstance(properties, dict) else ():
        assert isinstance(child, dict)
        found |= {f"{path}.{name}"} | paths(child, f"{path}.{name}")
    for key, sign in (("items", "[]"), ("additionalProperties", ".*")):
        below: JSON = schema.get(key)
        if isinstance(below, dict):
            found |= paths(below, path + sign)
    return found


@pytest.mark.parametrize("part", SCHEMAS)
def test_every_field_has_its_row_and_its_meaning(part: str) -> None:
    table = rows(part)
    assert set(table) == paths(SCHEMAS[part](), part)
    assert {len(cells) for cells in table.values()} == {4 if part == "spec" else 3}
    assert [path for path, cells in table.items() if not cells[-2]] == []


@pytest.mark.parametrize(
    ("path", "cells"),
    [
        ("spec.nodes", ["integer", "`1`", "The number of nodes that the job runs on.", "1 to 10000"]),
        ("spec.cleanPodPolicy", ["string", "`Running`", None, "one of `Running`, `All`, `None`"]),
        ("spec.source.git.commit", ["string", "**required**", None, None]),
        ("spec.inputs[].s3.uri", ["string", "**required**", None, None]),
        ("spec.sagemaker.tags", ["map of string", "-", None, "at most 50 entries; each: at most 256 characters"]),
        ("spec.procsPerNode", ["integer or string", "`Auto`", None, ""]),
    ],
)
def test_a_row_says_what_the_schema_says(path: str, cells: list[str | None]) -> None:
    row = rows("spec")[path]
    assert [said for said, expected in zip(row, cells, strict=True) if expected not in (None, said)] == []
