"""A text is split into its parts as a parser would split it, at any depth, and in time that its length limits."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api.document import JSON
from muster.objects.kubernetes.json_parts import MAX_LEVELS, MalformedJson, NestingTooDeep, Part, find_value

MEGABYTE = 1_400_000
SECONDS = 2.0
"""For a megabyte and a half, which takes a twentieth of that: a search with backtracking takes minutes."""

Values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
Encodings = st.sampled_from(["ascii", "utf-8"])
Indents = st.sampled_from([None, 1])


def deep(levels: int) -> bytes:
    return b'{"a":' * (levels - 1) + b'{"]}":"[{"}' + b"}" * (levels - 1)


@given(st.dictionaries(st.text(), Values, max_size=5), Indents, Encodings)
def test_a_map_is_its_members(value: dict[str, JSON], indent: int | None, encoding: str) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=encoding == "ascii").encode("utf-8", "replace")
    assert {name: part.parse() for name, part in find_value(text).iterate_members()} == json.loads(text)


@given(st.lists(Values, max_size=5), Indents)
def test_a_list_is_its_elements(value: list[JSON], indent: int | None) -> None:
    text = json.dumps(value, indent=indent).encode()
    assert [part.parse() for part in find_value(text).iterate_elements()] == value


@given(Values, Values, st.integers(MAX_LEVELS + 1, 10_000))
def test_what_is_too_deep_costs_its_neighbours_nothing(before: JSON, after: JSON, levels: int) -> None:
    text = b'{"before":%b,"deep":%b,"after":%b}' % (
        json.dumps(before).encode(),
        deep(levels),
        json.dumps(after).encode(),
    )
    members = dict(find_value(text).iterate_members())
    assert (members["before"].parse(), members["after"].parse()) == (before, after)
    with pytest.raises(NestingTooDeep):
        members["deep"].parse()


@pytest.mark.parametrize("levels", [1, 2, MAX_LEVELS])
def test_so_many_levels_are_read(levels: int) -> None:
    part = find_value(deep(levels))
    assert (part.end, part.parse()) == (len(deep(levels)), json.loads(deep(levels)))


@pytest.mark.parametrize("levels", [MAX_LEVELS + 1, 10_000])
def test_more_levels_are_not(levels: int) -> None:
    part = find_value(deep(levels))
    assert part.end == len(deep(levels))
    with pytest.raises(NestingTooDeep):
        part.get_text()


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b'{"a"',
        b'{"a":',
        b'{"a":1',
        b'{"a":1,',
        b'{"a" 1}',
        b"{1:2}",
        b'{"a":1]',
        b'{"a":"b',
        b"[]",
        b"3",
        b"nul",
    ],
)
def test_what_is_no_map_is_malformed(text: bytes) -> None:
    with pytest.raises(MalformedJson):
        {name: part.parse() for name, part in find_value(text).iterate_members()}


@given(st.binary(max_size=40))
def test_any_bytes_are_a_map_or_malformed(text: bytes) -> None:
    try:
        result = {name: part.parse() for name, part in find_value(text).iterate_members()}
    except MalformedJson:
        return
    assert result.keys() == json.loads(text[: text.rindex(b"}") + 1]).keys()


def wide(unit: bytes) -> bytes:
    return b"[" + b",".join([unit] * (MEGABYTE // (len(unit) + 1))) + b"]"


LARGE = {
    "empty maps": wide(b"{}"),
    "texts": wide(b'"a"'),
    "one text": b'["' + b"x" * MEGABYTE + b'"]',
    "escapes": b'["' + b'\\"' * (MEGABYTE // 2) + b'"]',
    "as deep as may be": wide(deep(MAX_LEVELS - 1)),
    "too deep": wide(deep(MAX_LEVELS)),
    "very deep": wide(deep(9_000)),
    "brackets": wide(b"[" * 9_000 + b"]" * 9_000),
    "wide, then deep": b"[" + b"{}," * (MEGABYTE // 3) + deep(9_000) + b"]",
    "deep, then wide": b"[" + deep(9_000) + b",{}" * (MEGABYTE // 3) + b"]",
    "zigzag": b'{"b":[[]],"a":' * 9_000 + b"{}" + b"}" * 9_000,
    "never closed": b"[" * MEGABYTE,
    "a text that never ends": b'["' + b"x" * MEGABYTE,
    "escapes that never end": b'["' + b"\\\\" * (MEGABYTE // 2),
}


@pytest.mark.parametrize("kind", LARGE)
def test_the_largest_object_is_cut_in_bounded_time(kind: str) -> None:
    began = time.process_time()
    part = find_value(LARGE[kind])
    try:
        assert part.end == len(LARGE[kind])
    except MalformedJson:
        assert "never" in kind
    assert time.process_time() - began < SECONDS


def test_who_stops_early_looks_at_nothing_that_follows() -> None:
    text = b'{"name":"a","rest":' + b"[" * MEGABYTE
    name, part = next(iter(find_value(text).iterate_members()))
    assert (name, part.parse()) == ("name", "a")


def test_a_part_knows_what_is_in_it() -> None:
    first, second = find_value(b'[{"a":1},{"b":2}]').iterate_elements()
    assert (first.contains(b'"a"'), first.contains(b'"b"'), second.contains(b'"b"')) == (True, False, True)


def test_a_map_of_thousands_of_fields_is_not_cut() -> None:
    text = json.dumps({str(number): 1 for number in range(2_000)}).encode()
    with pytest.raises(MalformedJson, match="fields"):
        list(find_value(text).iterate_members())
    assert isinstance(find_value(b'{"of":%b}' % text), Part)


@pytest.mark.parametrize("text", [rb'"\ud83d"', rb'{"\uDE00": 1}', b'["\xed\xa0\xbd"]'])
def test_half_of_a_character_is_malformed(text: bytes) -> None:
    with pytest.raises(MalformedJson):
        find_value(text).parse()


@pytest.mark.parametrize("text", [rb'"\ud83d\ude00"', '"\U0001f600"'.encode(), rb'"\\ud83d"', '"\ud7ff"'.encode()])
def test_whole_characters_are_read(text: bytes) -> None:
    assert find_value(text).parse() == json.loads(text)
