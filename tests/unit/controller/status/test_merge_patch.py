"""A patch turns one document into the other, and contains nothing unnecessary."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.api_server import merge_patch
from muster.api.document import JSON
from muster.controller.status.merge_patch import make_merge_patch

SCALARS = st.one_of(st.booleans(), st.integers(-3, 3), st.text("ab", max_size=2))
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text("xyz", max_size=1), inner)),
    max_leaves=8,
)
DOCUMENTS = st.dictionaries(st.text("xyz", max_size=1), VALUES)


@given(DOCUMENTS, DOCUMENTS)
def test_the_patch_makes_the_one_into_the_other(before: dict[str, JSON], after: dict[str, JSON]) -> None:
    assert merge_patch(before, make_merge_patch(before, after)) == after


@given(DOCUMENTS)
def test_nothing_is_sent_for_equal_documents(document: dict[str, JSON]) -> None:
    assert make_merge_patch(document, document) == {}


@pytest.mark.parametrize(
    ("before", "after", "patch"),
    [
        ({"phase": "Pending"}, {"phase": "Running"}, {"phase": "Running"}),
        ({"progress": {"step": 1, "at": "x"}}, {"progress": {"step": 2, "at": "x"}}, {"progress": {"step": 2}}),
        ({"startTime": "x", "phase": "Suspended"}, {"phase": "Suspended"}, {"startTime": None}),
        (
            {"conditions": [{"type": "A"}, {"type": "B"}]},
            {"conditions": [{"type": "A"}]},
            {"conditions": [{"type": "A"}]},
        ),
        ({"nodes": 1}, {"nodes": {"ready": 1}}, {"nodes": {"ready": 1}}),
        ({"nodes": {"ready": 1}}, {"nodes": {}}, {"nodes": {"ready": None}}),
    ],
)
def test_only_what_differs_is_sent(
    before: Mapping[str, JSON], after: Mapping[str, JSON], patch: Mapping[str, JSON]
) -> None:
    assert make_merge_patch(before, after) == patch
