"""Ranges of nodes: parsed once, and used without expansion."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api.spec.job import NodeOverride
from muster.api.spec.node_ranges import group_nodes, parse

_RANGE = st.tuples(st.integers(0, 30), st.integers(0, 30)).map(lambda pair: f"{pair[0]}-{pair[1]}")
_TEXT = st.lists(st.one_of(_RANGE, st.integers(0, 30).map(str)), min_size=1, max_size=12).map(",".join)


def _named(text: str) -> set[int]:
    return {node for part in parse(text).intervals for node in part}


@pytest.mark.parametrize(
    ("text", "joined"),
    [
        ("0", [range(1)]),
        ("0-3,7", [range(4), range(7, 8)]),
        ("5,0-3,2-4", [range(6)]),
        ("0,0,0", [range(1)]),
        ("3-1,2", [range(2, 3)]),
        ("0-999999999999999999999999", [range(10**24)]),
    ],
)
def test_ranges_are_joined(text: str, joined: list[range]) -> None:
    assert list(parse(text).disjoint_intervals) == joined


@given(_TEXT)
def test_a_node_is_among_them_when_a_range_has_it(text: str) -> None:
    assert {node for node in range(40) if node in parse(text)} == _named(text)


@given(st.lists(_TEXT, max_size=6))
def test_alike_nodes_are_named_by_the_same_texts(texts: list[str]) -> None:
    groups: dict[tuple[bool, ...], list[int]] = {}
    for node in range(20):
        groups.setdefault(tuple(node in _named(text) for text in texts), []).append(node)
    assert group_nodes(20, [parse(text) for text in texts]) == tuple(tuple(group) for group in groups.values())


def test_an_override_is_parsed_once() -> None:
    override = NodeOverride(nodes="0-3", template={})
    assert override.ranges is override.ranges
    assert override == NodeOverride(nodes="0-3", template={})
