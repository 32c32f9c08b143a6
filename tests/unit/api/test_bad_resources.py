"""All refused resources: path and message; and the CRD agrees.

jsonschema checks the schema's results here. The results of the rules (CEL) and of list keys need the API server's own
code: tests/cluster/test_resources.py compares all of them with a real one.
"""

import copy
from collections import Counter
from functools import cache

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.api.document import JSON, Document, FieldPath, format_path
from muster.api.field_problems import InvalidResource
from muster.api.validation.validate import MAX_SPEC_BYTES, validate
from support.rows import check_rows
from support.searches import choose_example_count
from support.valid_jobs import make_job
from unit.api.api_resources import (
    BadResource,
    bad_resources,
    full_resource,
    openapi_schema,
    part,
    problems,
    resource,
    spec,
)

ROWS = bad_resources()
NAMES = [f"{row.at} {row.says}"[:60] for row in ROWS]


def test_a_bad_resource_is_refused_in_words() -> None:
    def check(row: BadResource) -> None:
        ((path, message),) = problems(row.value)
        assert path == row.at
        assert row.says in message

    check_rows(ROWS, check)


def test_the_schema_refuses_what_a_schema_can_say() -> None:
    def check_row(row: BadResource) -> None:
        assert schema_refuses(row.value) == (row.by == "schema")

    check_rows(ROWS, check_row)


def test_the_table_is_long() -> None:
    assert len(ROWS) >= 120
    assert set(Counter(row.by for row in ROWS)) == {"schema", "cel", "key", "server", "muster"}


def test_all_problems_are_reported_at_once() -> None:
    value = resource(
        metadata={"name": "A"},
        spec={
            "nodes": 0,
            "launcher": {},
            "command": "python train.py",
            "env": [{"name": "A", "value": 1}, {"name": "RANK"}, {}],
            "hyperparameters": {"a": None, "b c": 1},
            "network": {"interface": "a b"},
        },
    )
    assert [path for path, _ in problems(value)] == [
        "metadata.name",
        "spec.nodes",
        "spec.command",
        "spec.env[0].value",
        "spec.env[2].name",
        "spec.hyperparameters.a",
        "spec.launcher",
        "spec.network.interface",
        "spec.env[1].name",
        'spec.hyperparameters["b c"]',
    ]


@pytest.mark.parametrize("value", [None, 1, "job", [], True])
def test_what_is_no_resource_at_all(value: JSON) -> None:
    ((path, message),) = problems(value)
    assert path == ""
    assert "a resource is expected: apiVersion, kind, metadata, spec" in message


def test_the_message_about_another_map_says_what_is_expected() -> None:
    ((path, message),) = problems({"nodes": 2})
    assert path == ""
    assert message.startswith("apiVersion and kind are missing; apiVersion: muster.dev/v1alpha1 and kind:")


def test_a_spec_that_no_plan_could_carry_is_refused() -> None:
    ((path, message),) = problems(resource(spec=spec(command=["x" * 30000] * 9)))
    assert path == "spec"
    assert f"at most {MAX_SPEC_BYTES} are allowed" in message


def test_text_from_the_user_stays_on_its_line_and_short() -> None:
    with pytest.raises(InvalidResource) as refused:
        make_job("a\nb" + "c" * 1000, {**spec(), "x\ny": 1})
    assert len(str(refused.value).splitlines()) == 2
    assert len(str(refused.value)) < 1000


def test_a_resource_of_endless_depth_is_refused() -> None:
    deep: JSON = 1
    for _ in range(5000):
        deep = [deep]
    assert problems(resource(spec=spec(hyperparameters={"a": deep}))) == [
        (
            "spec.hyperparameters.a[0][0][0][0][0]",
            "nested more than 64 levels deep; move the data to a file",
        )
    ]


def test_a_wrong_launcher_does_not_make_the_command_wrong() -> None:
    value = resource(spec=spec(launcher={"perNode": 3}, command=["torchrun", "train.py"]))
    assert [path for path, _ in problems(value)] == ["spec.launcher.perNode"]


# --- any change of a valid resource

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False).filter(lambda number: not number.is_integer()),
    st.text(max_size=8),
    # copies: a later change of the same resource modifies the value of an earlier one
    st.sampled_from([[], {}, [None], {"a": {"b": None}}, "^", "(" * 9]).map(copy.deepcopy),
)


def paths_of(value: JSON, at: FieldPath = ()) -> list[FieldPath]:
    below: list[FieldPath] = []
    if isinstance(value, dict):
        below = [path for key, item in value.items() for path in paths_of(item, (*at, key))]
    if isinstance(value, list):
        below = [path for index, item in enumerate(value) for path in paths_of(item, (*at, index))]
    return [at, *below]


@st.composite
def changed(draw: st.DrawFn) -> JSON:
    value: JSON = copy.deepcopy(full_resource())
    for _ in range(draw(st.integers(1, 3))):
        *parents, last = draw(st.sampled_from([path for path in paths_of(value) if path] or [("spec",)]))
        around: JSON = value
        for key in parents:
            around = part(around, key)
        assert isinstance(around, dict | list)
        change = draw(st.sampled_from(["drop", "retype", "add"]))
        if change == "retype":
            around[last] = draw(VALUES)  # type: ignore[index]
        elif change == "drop":
            del around[last]  # type: ignore[arg-type]
        elif isinstance(around, dict):
            around[draw(st.text(max_size=8))] = draw(VALUES)
        else:
            around.insert(0, draw(VALUES))
    return value


@settings(max_examples=choose_example_count(300, share=6), deadline=None)
@given(changed())
def test_any_change_is_accepted_or_refused_where_it_is(value: JSON) -> None:
    result = problems(value)
    by_key = {format_path(path) for path in paths_of(value)}
    for path, message in result:
        assert message
        assert "placeholder" not in message
        assert "Input should" not in message
        assert "which is not allowed here" not in message
        # it points into the document, or to a missing field directly below a part of it
        assert path in by_key or path.rpartition(".")[0] in by_key or path == "metadata.name"
    if not result:
        validate(Document(value))


@settings(max_examples=choose_example_count(150), deadline=None)
@given(changed())
def test_what_muster_accepts_the_schema_accepts(value: JSON) -> None:
    if not problems(value):
        assert not schema_refuses(value)


# --- the CRD's result


@cache
def strict_schema() -> dict[str, JSON]:
    return strict(openapi_schema())


def schema_refuses(value: JSON) -> bool:
    schema = strict_schema()
    return not jsonschema.Draft202012Validator(schema).is_valid(without_nulls(value, schema))


def strict(schema: dict[str, JSON]) -> dict[str, JSON]:
    """As JSON schema: unknown fields refused, as in kubectl's strict validation, and int-or-string expanded."""
    result = {
        key: strict(item) if isinstance(item, dict) else item for key, item in schema.items() if key != "nullable"
    }
    if schema.get("x-kubernetes-int-or-string") is True:
        result["type"] = ["integer", "string"]
    if isinstance(schema.get("properties"), dict) and schema.get("type") == "object":
        result["additionalProperties"] = False
    return result


def without_nulls(value: JSON, schema: JSON) -> JSON:
    """As in the API server: a null field that isn't nullable is dropped."""
    if isinstance(value, list):
        items = schema.get("items") if isinstance(schema, dict) else None
        return [without_nulls(item, items) for item in value]
    if not isinstance(value, dict) or not isinstance(schema, dict):
        return value
    entry = schema.get("properties")
    if not isinstance(entry, dict):
        return value
    kept = {key: item for key, item in value.items() if item is not None or key not in entry}
    return {key: without_nulls(item, entry.get(key)) for key, item in kept.items()}


def test_a_valid_resource_passes_the_schema() -> None:
    assert not schema_refuses(full_resource())
