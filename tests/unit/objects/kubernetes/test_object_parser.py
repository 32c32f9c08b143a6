"""The parsed and the skipped parts of an object: a skipped part of one object affects neither the object nor the
others.
"""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api.document import JSON
from muster.objects.kubernetes.json_parts import MAX_LEVELS, MalformedJson, find_value
from muster.objects.kubernetes.kinds import Object, ParseOptions
from muster.objects.kubernetes.object_parser import (
    LAST_APPLIED,
    keep_identity,
    parse_json,
    read_missing_parts,
    read_object,
)
from muster.objects.kubernetes.responses import read_page

DEEP = b'{"f:a":' * 3_000 + b"{}" + b"}" * 3_000
IDENTITY: dict[str, JSON] = {"name": "a", "namespace": "ns", "uid": "u", "resourceVersion": "7"}


def text_of(metadata: bytes = b"", rest: bytes = b'"spec":{"x":1}') -> bytes:
    return (
        b'{"kind":"Pod","metadata":{"annotations":{},%b"name":"a","namespace":"ns","resourceVersion":"7","uid":"u"},%b}'
        % (
            metadata,
            rest,
        )
    )


def read(text: bytes, parse_options: ParseOptions | None = None) -> Object:
    return read_object(find_value(text), parse_options or ParseOptions())


@pytest.mark.parametrize("fields", [b"[]", b"[{}]", DEEP, b"[%b]" % DEEP])
def test_managed_fields_are_never_read(fields: bytes) -> None:
    result = read(text_of(b'"managedFields":%b,' % fields))
    assert result == {"kind": "Pod", "metadata": {"annotations": {}, **IDENTITY}, "spec": {"x": 1}}


def test_a_part_that_is_too_deep_is_left_out_and_named() -> None:
    result = read(text_of(rest=b'"spec":%b,"status":{"phase":"x"}' % DEEP))
    assert (result["status"], "spec" in result) == ({"phase": "x"}, False)
    assert read_missing_parts(result) == {"spec": f"nested more than {MAX_LEVELS} levels deep"}


def test_a_part_that_is_too_long_is_left_out_and_named() -> None:
    parse_options = ParseOptions(max_bytes={"spec": 100, "metadata.finalizers": 10})
    result = read(text_of(b'"finalizers":["example.com/x"],', b'"spec":{"x":"%b"}' % (b"y" * 93)), parse_options)
    assert read_missing_parts(result) == {
        "metadata.finalizers": "found 17 bytes, which are too many",
        "spec": "found 101 bytes, which are too many",
    }


def test_a_number_that_python_refuses_is_left_out() -> None:
    result = read(text_of(rest=b'"spec":{"x":%b}' % (b"9" * 5_000)))
    assert list(read_missing_parts(result)) == ["spec"]


@pytest.mark.parametrize(
    ("annotations", "kept"),
    [
        (b'{"a":"12345678","b":"x","c":"y"}', {"a": "1234", "c": "y"}),
        (b'{"a":{"deep":1},"c":"y"}', {"c": "y"}),
        (b'{"c":%b}' % DEEP, {}),
        (b"[]", {}),
        (b"{%b}" % b",".join(b'"b%d":"x"' % number for number in range(2_000)), {}),
    ],
)
def test_only_wanted_annotations_are_kept_and_none_affects_the_object(annotations: bytes, kept: dict[str, str]) -> None:
    text = text_of().replace(b'"annotations":{}', b'"annotations":' + annotations)
    result = read(text, ParseOptions(annotations={"a": 4, "c": 4}))
    assert result == {"kind": "Pod", "metadata": {"annotations": kept, **IDENTITY}, "spec": {"x": 1}}


def test_only_what_is_wanted_is_kept() -> None:
    parse_options = ParseOptions(metadata=frozenset({"name"}), parts=frozenset({"status"}))
    result = read(text_of(rest=b'"spec":{"x":"%b"},"status":{}' % (b"y" * 300)), parse_options)
    assert result == {"kind": "Pod", "metadata": {"name": "a"}, "status": {}}


def test_a_part_may_stay_text() -> None:
    result = read(text_of(rest='"spec":{"x":["é"]}'.encode()), ParseOptions(text_fields=frozenset({"spec"})))
    assert result["spec"] == '{"x":["é"]}'


def test_kubectls_copy_of_the_object_is_not_kept() -> None:
    copy = json.dumps({LAST_APPLIED: "{}", "mine": "1"}).encode()
    metadata = read(b'{"metadata":{"annotations":%b,"name":"a"}}' % copy)["metadata"]
    assert metadata == {"annotations": {"mine": "1"}, "name": "a"}


def test_of_what_is_of_no_interest_nothing_but_the_identity_is_read() -> None:
    parse_options = ParseOptions(required_text=b'"DistributedTrainingJob"')
    # It doesn't even search for its end.
    result = read(
        b'{"metadata":{"name":"a","namespace":"ns","uid":"u","resourceVersion":"7","managedFields":' + b"[" * 99,
        parse_options,
    )
    assert result["metadata"] == IDENTITY
    assert "" in read_missing_parts(result)
    assert read_missing_parts(read(text_of(rest=b'"spec":{"kind":"DistributedTrainingJob"}'), parse_options)) == {}


SMALL = ParseOptions(
    required_text=b'"Pod"',
    metadata=frozenset({"name", "namespace", "annotations"}),
    parts=frozenset({"spec", "status"}),
    whole_bytes=10_000,
)
PART_BY_PART = replace(SMALL, whole_bytes=0)


@pytest.mark.parametrize(
    "text",
    [
        text_of(),
        text_of(
            b'"managedFields":[{"f:a":{}}],',
            b'"spec":{"x":[1,{"y":null}]},"other":{"z":"%b"},"status":{}' % (b"z" * 300),
        ),
        text_of(rest='"spec":{"x":"é"}'.encode()),
        text_of(rest=b'"spec":{"x":"\\ud83d\\ude00"}'),
        text_of(rest=b'"spec":{"x":"\\ud83d"}'),
        text_of(rest=b'"spec":{"x":1},"spec":{"x":2}'),
        text_of(b'"managedFields":%b,' % DEEP),
        text_of(rest=b'"spec":{"x":"%b"}' % (b"y" * 20_000)),
        b'{"metadata":{"annotations":%b,"name":"a"},"kind":"Pod"}'
        % json.dumps({LAST_APPLIED: "{}", "b": "1"}).encode(),
        b'{"metadata":{"name":"a"},"kind":"Job"}',
    ],
)
def test_a_small_object_parsed_as_a_whole_has_the_same_fields(text: bytes) -> None:
    assert read(text, SMALL) == read(text, PART_BY_PART)
    # In a watch's event, something follows the object.
    part = find_value(text + b"}\n")
    assert read_object(part, SMALL) == read(text, PART_BY_PART)
    page = read_page(b'{"items":[%b,%b],"metadata":{}}' % (text, text))
    assert list(page.parse_items(SMALL)) == [read(text, PART_BY_PART)] * 2


@pytest.mark.parametrize("text", [b"", b"[]", b'{"metadata":3}', b'{"metadata":{}', b'{"metadata":{"name":"Pod"}'])
def test_what_is_no_object_is_malformed_also_as_a_whole(text: bytes) -> None:
    with pytest.raises(MalformedJson):
        read(text, replace(SMALL, required_text=b""))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda each: st.lists(each) | st.dictionaries(st.text(), each),
    )
)
def test_any_small_object_parsed_as_a_whole_has_the_same_fields(spec: JSON) -> None:
    text = json.dumps({"kind": "Pod", "metadata": {"name": "a"}, "spec": spec}).encode()
    assert read(text, SMALL) == read(text, PART_BY_PART)


def test_identity_only_forgets_the_rest() -> None:
    result = keep_identity({"metadata": {**IDENTITY, "labels": {}}, "spec": {}}, "it is bad")
    assert (result["metadata"], read_missing_parts(result)) == (IDENTITY, {"": "it is bad"})


@pytest.mark.parametrize("text", [b"", b"[]", b'{"metadata":3}', b'{"metadata":{}', b'{"metadata":{"name":"a"}'])
def test_what_is_no_object_is_malformed(text: bytes) -> None:
    with pytest.raises(MalformedJson):
        read(text)


def test_something_after_the_value_is_malformed() -> None:
    with pytest.raises(MalformedJson):
        parse_json(b'{"a":1}x')


ITEMS = {
    "as Go's maps are written": b'{"items":[%b],"metadata":{"resourceVersion":"9","continue":"more"}}',
    "as Go's types are written": b'{"metadata":{"resourceVersion":"9","continue":"more"},"items":[%b]}',
}


@pytest.mark.parametrize("order", ITEMS)
def test_an_item_that_is_too_deep_leaves_the_others(order: str) -> None:
    """The items of a list are in one text."""
    good, bad = text_of(), text_of(b'"managedFields":%b,' % DEEP, b'"spec":%b' % DEEP)
    page = read_page(ITEMS[order] % b",".join([good, bad, good]))
    assert (page.resource_version, page.continue_token) == ("9", "more")
    objects = list(page.parse_items(ParseOptions()))
    assert [list(read_missing_parts(item)) for item in objects] == [[], ["spec"], []]
    assert [item["metadata"] for item in objects] == [{"annotations": {}, **IDENTITY}] * 3


def test_an_item_that_is_no_object_is_not_there() -> None:
    page = read_page(b'{"items":[3,%b,{"metadata":4}],"metadata":{}}' % text_of())
    assert len(list(page.parse_items(ParseOptions()))) == 1
    assert read_page(b'{"items":null,"metadata":{"resourceVersion":"1"}}').items == ()
