"""The size limits of a resource, and the number of reported problems."""

from typing import cast

import pytest

from muster.api.document import JSON, Document, FieldPath
from muster.api.field_problems import InvalidResource
from muster.api.file_paths import find_file_and_folder
from muster.api.json_fields import read_mapping
from muster.api.schema import Schema, build_spec_schema, find_schema
from muster.api.size_limits import MAX_DEPTH, MAX_VALUES, find_deep_path, find_size_problem
from muster.api.status.reader import read_status
from muster.api.status.rules import find_status_problems
from muster.api.status.status import Status
from muster.api.validation.lengths import truncate_lists
from muster.api.validation.rules.overrides import MAX_POD_VARIANTS
from muster.api.validation.validate import MAX_PROBLEMS, validate
from muster.core.status.unreconciled.refused_status import make_refused_status
from support.rows import check_rows

from .api_resources import problems, resource, spec


def _build_nested_pattern(levels: int) -> JSON:
    value: JSON = 0
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ([0] * (MAX_VALUES - 1), None),
        ([0] * MAX_VALUES, "holds more than"),
        ({str(key): key for key in range(MAX_VALUES)}, "holds more than"),
        (_build_nested_pattern(MAX_DEPTH - 1), None),
        (_build_nested_pattern(MAX_DEPTH), "nested more than"),
        (_build_nested_pattern(9000), "nested more than"),
    ],
)
def test_the_extent_of_a_value_is_limited(value: JSON, says: str | None) -> None:
    text = find_size_problem(value)
    assert text is None if says is None else says in (text or "")


def test_a_resource_with_too_many_values_is_refused_whole() -> None:
    ((path, message),) = problems(resource(spec=spec(template={"spec": {"volumes": [0] * MAX_VALUES}})))
    assert path == ""
    assert message.startswith(f"holds more than {MAX_VALUES} values")


def test_what_is_not_read_does_not_count() -> None:
    value = resource()
    metadata = value["metadata"]
    assert isinstance(metadata, dict)
    value["metadata"] = {**metadata, "managedFields": [{"fieldsV1": _build_nested_pattern(300)}]}
    value["status"] = {"ranks": [0] * MAX_VALUES}
    assert validate(Document(value)).spec.nodes


def test_the_first_problems_are_named_and_the_others_counted() -> None:
    with pytest.raises(InvalidResource) as caught:
        validate(Document(resource(spec=spec(**{f"k{index}": 0 for index in range(500)}))))
    assert len(caught.value.problems) == MAX_PROBLEMS
    assert caught.value.omitted_count == 500 - MAX_PROBLEMS
    assert str(caught.value).endswith("and 480 more; correct these first")
    status = make_refused_status(Status(), caught.value, 1, 0.0)
    assert status.message.endswith("and 497 more")


def test_of_a_list_that_is_too_long_the_first_entries_are_looked_at() -> None:
    right: list[JSON] = [{"name": "a", "regex": "(a)"}] * 39
    result = dict(problems(resource(spec=spec(metrics=right + [{}] * 300))))
    assert result["spec.metrics"] == "found 339 entries; at most 40 are allowed"
    assert "spec.metrics[39].name" in result
    assert "spec.metrics[40].name" not in result


def _list_length_limits(schema: Schema, path: FieldPath = ("spec",)) -> dict[FieldPath, int]:
    """The limits of lists and maps in the schema, by path. The path of an entry ends with 0 or "entry"."""
    result: dict[FieldPath, int] = {}
    for name in ("maxItems", "maxProperties"):
        if name in schema:
            result[path] = cast("int", schema[name])
    children = {(*path, key): child for key, child in read_mapping(schema.get("properties")).items()}
    children |= {(*path, key): schema[name] for key, name in ((0, "items"), ("entry", "additionalProperties"))
                 if isinstance(schema.get(name), dict)}  # fmt: skip
    for child_path, child in children.items():
        result |= _list_length_limits(read_mapping(child), child_path)
    return result


def _put_at(path: FieldPath, value: JSON) -> JSON:
    for part in reversed(path):
        value = [value] if part == 0 else {str(part): value}
    return value


_LENGTH_LIMITS = _list_length_limits(build_spec_schema())


def test_each_list_and_map_is_cut_at_the_length_that_the_schema_allows() -> None:
    def check(path: FieldPath) -> None:
        most, schema = _LENGTH_LIMITS[path], find_schema(path) or {}
        whole: JSON = ["x"] * (most + 1) if schema["type"] == "array" else {str(key): "x" for key in range(most + 1)}
        fields, problems = truncate_lists(cast("dict[str, JSON]", _put_at(path[1:], whole)))
        assert problems == [(path, f"found {most + 1} entries; at most {most} are allowed")]
        assert truncate_lists(fields) == (fields, [])

    check_rows(_LENGTH_LIMITS, check)


def test_overrides_make_few_kinds_of_pods() -> None:
    overrides: list[JSON] = [{"nodes": f"0-{last}", "template": {}} for last in range(20, 60)]
    ((path, message),) = problems(resource(spec=spec(nodes=100, nodeOverrides=overrides)))
    assert path == "spec.nodeOverrides"
    assert message.startswith("found 41 combinations, which need 820 merges of overrides")


def test_overrides_that_overlap_at_random_make_too_many_kinds() -> None:
    def stripes(step: int) -> str:
        return ",".join(f"{first}-{first + 20}" for first in range(0, 22 * step, step))

    overrides: list[JSON] = [{"nodes": stripes(step), "template": {}} for step in range(61, 85)]
    ((path, message),) = problems(resource(spec=spec(nodes=4000, nodeOverrides=overrides)))
    assert path == "spec.nodeOverrides"
    assert int(message.split()[1]) > MAX_POD_VARIANTS


def test_a_file_that_is_also_a_folder_is_found_in_a_path_of_any_length() -> None:
    assert find_file_and_folder(["a", "a/b"]) == "a"
    assert find_file_and_folder(["a/b/c", "a/b"]) == "a/b"
    assert find_file_and_folder(["a/b", "a-b", "b"]) is None
    assert find_file_and_folder(["a/" * 60_000, "b"]) is None


def test_of_a_status_that_is_too_large_nothing_is_read() -> None:
    written: dict[str, JSON] = {"phase": "Running", "conditions": [{}] * MAX_VALUES}
    assert read_status({"status": written}) == Status()
    (problem,) = find_status_problems(written)
    assert problem.path == "status"
    assert "remove what muster did not write" in problem.message


def test_what_is_too_deep_is_named_by_the_beginning_of_its_path() -> None:
    value: JSON = 1
    for _ in range(MAX_DEPTH):
        value = {"a": value}
    assert find_deep_path({"image": "x", "volumes": [{}, value]}) == ("volumes", 1, "a", "a", "a", "a", "a", "a")
    assert find_deep_path({"volumes": [{}]}) == ()
    assert find_deep_path([value] * MAX_VALUES) == ()
