"""The CRD is up to date, structural, and has a description for every field."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from muster.api.crd import PLURALS, build_crd, build_crds, format_crd_yaml
from muster.api.document import JSON
from muster.api.validation.all_rules import RULES
from muster.api.validation.rule import Rule
from support.rows import check_rows
from unit.api.api_resources import fields, openapi_schema, part

CHECKED_IN = Path(__file__).parents[3] / "crds"


def schemas() -> list[tuple[str, dict[str, JSON]]]:
    return list(walk("", openapi_schema()))


def walk(path: str, schema: JSON) -> Iterator[tuple[str, dict[str, JSON]]]:
    assert isinstance(schema, dict)
    yield path, schema
    for name, field in fields({"properties": {}, **schema}, "properties").items():
        yield from walk(f"{path}.{name}", field)
    for name in ("items", "additionalProperties"):
        if name in schema:
            yield from walk(f"{path}.{name}", schema[name])


@pytest.mark.parametrize("plural", PLURALS)
def test_the_file_is_current(plural: str) -> None:
    assert (CHECKED_IN / f"muster.dev_{plural}.yaml").read_text() == format_crd_yaml(plural), "run: make generate"


@pytest.mark.parametrize(("plural", "crd"), list(zip(PLURALS, build_crds(), strict=True)))
def test_the_text_is_the_object(plural: str, crd: JSON) -> None:
    text = format_crd_yaml(plural)
    assert yaml.safe_load(text) == crd
    assert "&id" not in text


def test_every_field_is_described() -> None:
    bare = [path for path, schema in schemas() if not schema.get("description")]
    # Kubernetes describes metadata, and the list's description covers entries without their own fields
    assert [
        path for path in bare if path != ".metadata" and not path.endswith((".items", ".additionalProperties"))
    ] == []


def test_the_schema_is_structural() -> None:
    for path, schema in schemas():
        assert not {"anyOf", "oneOf", "allOf", "not", "$ref", "$defs", "title", "const"} & set(schema), path
        typed = (
            "type" in schema
            or schema.get("x-kubernetes-int-or-string")
            or "x-kubernetes-preserve-unknown-fields" in schema
        )
        assert typed, path


def test_everything_in_the_spec_is_bounded() -> None:
    bound = {"string": "maxLength", "array": "maxItems", "integer": "maximum"}
    for path, schema in schemas():
        kind = str(schema.get("type"))
        if path.startswith(".spec.") and kind in bound and "enum" not in schema:
            assert bound[kind] in schema, path
        if path.startswith(".spec.") and "additionalProperties" in schema:
            assert "maxProperties" in schema, path


def test_every_list_says_how_it_is_merged() -> None:
    kinds = {path: schema["x-kubernetes-list-type"] for path, schema in schemas() if schema.get("type") == "array"}
    assert {path for path, kind in kinds.items() if kind == "map"} == {
        ".spec.env",
        ".spec.metrics",
        ".spec.inputs",
        ".status.conditions",
    }


def test_a_rule_says_the_same_in_the_crd() -> None:
    checks = [checks for _, schema in schemas() for checks in [schema.get("x-kubernetes-validations", [])]]
    said = [part(check, "message") for each in checks if isinstance(each, list) for check in each]

    def check_rule(rule: Rule) -> None:
        assert said.count(rule.message) == (0 if rule.cel is None else len(rule.schema_paths))
        assert rule.rationale.endswith(".")

    check_rows(RULES, check_rule)


def test_names_columns_and_subresources() -> None:
    assert part(build_crd(), "spec", "names", "shortNames") == ["dtj"]
    assert part(build_crd(), "spec", "names", "categories") == ["all"]
    columns = part(build_crd(), "spec", "versions", 0, "additionalPrinterColumns")
    assert isinstance(columns, list)
    assert [part(column, "name") for column in columns] == [
        *("Backend", "Phase", "Nodes", "Ranks", "Step", "Restarts", "Age"),
        *("Percent", "Remaining", "Spares", "Attempt", "Message"),
    ]
    assert part(build_crd(), "spec", "versions", 0, "subresources") == {
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.nodes",
            "statusReplicasPath": ".status.nodes.ready",
            "labelSelectorPath": ".status.elastic.selector",
        },
    }


def test_a_caller_cannot_change_the_next_callers_crd() -> None:
    before = format_crd_yaml()
    fields(build_crd(), "spec").clear()
    fields(openapi_schema(), "properties", "spec", "properties").clear()
    assert format_crd_yaml() == before
