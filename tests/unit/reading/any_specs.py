"""Specs with all fields, valid and invalid, small and of the maximum size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from hypothesis import strategies as st

from muster.api.document import JSON
from muster.api.schema import Schema, build_spec_schema
from muster.api.validation.rules.pods.schema import POD_SPEC, load_pod_schema

_PIECES = (
    *("a", "0", "a/", "/a", "a,", "0,", "0-9,", "-", ".", "a-", "é", "\u0001", "\uffff", "\U0001f600", " ", "\\", '"'),
    *(
        "(a)",
        "(",
        "[!-~]",
        "[é]",
        "(?i)",
        "a|",
        "(?:a",
        "a*",
        "a{9}",
        "s3://a/",
        "https://a",
        "$",
        "{{",
        "--mca ",
        "=",
        ":",
    ),
)
_WORDS = (
    *("", "a", "Auto", "trainer", "muster", "s3://bucket/key", "https://a/b", "0-9", "(a)", "8", "500m", "/opt/ml"),
    *("arn:aws:iam::111122223333:role/T", "ml.p4d.24xlarge", "us-west-2", "10.0.0.0/8", "RANK", "x" * 200),
)
_COUNTS = (0, 1, 2, 3, 10, 64, 100, 500, 1000, 3000, 9000)
_LONGEST = 200_000
_DEPTH = 4


def any_spec() -> st.SearchStrategy[JSON]:
    """Return a job with some valid fields and some invalid values."""
    schema = build_spec_schema()
    fields = _properties(schema)
    required: dict[str, JSON] = {"image": "x", "command": ["x"], "launcher": {"direct": {}}}
    chosen = st.lists(st.sampled_from(sorted(fields)), min_size=1, max_size=5, unique=True)
    described = chosen.flatmap(
        lambda names: st.fixed_dictionaries({name: _field(name, fields[name]) for name in names})
    )
    return st.one_of(described.map(lambda some: {**required, **some}), described, _junk())


def _field(name: str, schema: Schema) -> st.SearchStrategy[JSON]:
    if name == "template":
        return _template()
    if name == "nodeOverrides":
        return _repeated(st.fixed_dictionaries({"nodes": _text(schema), "template": _template()}))
    return _value(schema, _DEPTH)


def _value(schema: Schema, depth: int) -> st.SearchStrategy[JSON]:
    return st.one_of(_right(schema, depth), _right(schema, depth), _junk())


def _right(schema: Schema, depth: int) -> st.SearchStrategy[JSON]:
    if "enum" in schema:
        return st.sampled_from(cast("list[JSON]", schema["enum"]))
    match schema.get("type"):
        case "array" if depth:
            result = _repeated(_value(cast("Schema", schema.get("items", {})), depth - 1))
        case "object" if depth and "properties" in schema:
            result = _object(_properties(schema), depth)
        case "object":
            below = cast("Schema", schema.get("additionalProperties") or {})
            result = st.builds(_keyed, st.sampled_from(_COUNTS), _scalar(below))
        case "integer":
            result = st.one_of(st.sampled_from([0, 1, 2, 64, 10000]), st.integers())
        case "boolean":
            result = st.booleans()
        case _:
            result = _text(schema)
    return result


def _object(fields: Mapping[str, Schema], depth: int) -> st.SearchStrategy[JSON]:
    if not fields:
        return st.just({})
    chosen = st.lists(st.sampled_from(sorted(fields)), max_size=4, unique=True)
    return chosen.flatmap(
        lambda names: st.fixed_dictionaries({name: _value(fields[name], depth - 1) for name in names})
    ).map(lambda current: cast("JSON", current))


def _text(schema: Schema) -> st.SearchStrategy[JSON]:
    longest = schema.get("maxLength")
    limit = longest if isinstance(longest, int) else 4096
    counts = st.sampled_from([*_COUNTS, limit, _LONGEST])
    pieces = st.lists(st.sampled_from(_PIECES), min_size=1, max_size=4).map("".join)
    # within the limit, so that more than its length is checked
    repeated = st.builds(lambda piece, count: (piece * count)[:limit], pieces, counts)
    around = st.builds(lambda middle: f"({middle})"[:limit], repeated)
    return st.one_of(st.sampled_from(_WORDS), repeated, around)


def _scalar(schema: Schema) -> st.SearchStrategy[JSON]:
    return st.one_of(st.sampled_from(_WORDS), st.integers(0, 9), _text(schema), st.none(), st.just([]), st.just({}))


def _junk() -> st.SearchStrategy[JSON]:
    leaves: st.SearchStrategy[JSON] = st.sampled_from([0, None, "", [], {}, True, -1, 1e300, "x"])
    several = st.builds(lambda item, count: [item] * count, leaves, st.sampled_from(_COUNTS))
    fields = st.builds(_keyed, st.sampled_from(_COUNTS), leaves)
    return st.one_of(leaves, several, fields, st.integers(1, 80).map(_build_nested_pattern))


def _repeated(item: st.SearchStrategy[JSON]) -> st.SearchStrategy[JSON]:
    """One entry many times, or each time a little different: with another name or key."""
    plain = st.builds(lambda entry, count: [entry] * count, item, st.sampled_from(_COUNTS))
    named = st.builds(_named, item, st.sampled_from(_COUNTS), st.sampled_from(["name", "key", "mountPath", "nodes"]))
    return st.one_of(st.lists(item, max_size=3), plain, named)


def _named(entry: JSON, count: int, key: str) -> JSON:
    if not isinstance(entry, dict):
        return [entry] * count
    return [{**entry, key: f"/{index}" if key == "mountPath" else str(index)} for index in range(count)]


def _keyed(count: int, value: JSON) -> JSON:
    return {f"k{index}": value for index in range(count)}


def _build_nested_pattern(levels: int) -> JSON:
    value: JSON = 0
    for _ in range(levels):
        value = {"a": value}
    return value


def _template() -> st.SearchStrategy[JSON]:
    metadata = st.one_of(_junk(), st.fixed_dictionaries({"labels": _junk(), "annotations": _junk()}))
    return st.fixed_dictionaries({}, optional={"metadata": metadata, "spec": _of_pod(POD_SPEC, _DEPTH)})


def _of_pod(kind: str, depth: int) -> st.SearchStrategy[JSON]:
    """Return a value of a pod field's type, as `load_pod_schema` names it."""
    if kind[0] == "[" and depth:
        return _repeated(_of_pod(kind[1:-1], depth))
    if kind[0] == "{":
        return st.builds(_keyed, st.sampled_from(_COUNTS), _scalar({}))
    types = load_pod_schema().types.get(kind)
    if not types or not depth:
        return _scalar({})
    chosen = st.lists(st.sampled_from(sorted(types)), max_size=3, unique=True)
    return chosen.flatmap(
        lambda names: st.fixed_dictionaries({name: _of_pod(types[name], depth - 1) for name in names})
    ).map(lambda current: {**current, "name": "trainer"} if "name" in types else cast("JSON", current))


def _properties(schema: Schema) -> Mapping[str, Schema]:
    return cast("Mapping[str, Schema]", schema.get("properties", {}))
