"""The text for a set of ranks in a status."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.core.status.rank_ranges import format_ranges


@pytest.mark.parametrize(
    ("ranks", "text"),
    [((), ""), ((3,), "3"), ((0, 1), "0-1"), ((*range(13), *range(14, 32)), "0-12,14-31"), ((5, 1, 1, 3), "1,3,5")],
)
def test_successive_ranks_are_joined_to_a_range(ranks: tuple[int, ...], text: str) -> None:
    assert format_ranges(ranks) == text


def test_a_long_text_ends_in_an_ellipsis_after_a_whole_range() -> None:
    assert format_ranges(range(0, 20, 2), limit=10) == "0,2,4,6,…"
    assert format_ranges(range(0, 10, 2), limit=9) == "0,2,4,6,8"


@given(st.sets(st.integers(0, 100_000), max_size=2000))
def test_a_text_is_short_and_contains_only_the_given_ranks(ranks: set[int]) -> None:
    text = format_ranges(ranks)

    assert len(text) <= 512
    parts = [part for part in text.split(",") if part not in {"", "…"}]
    parsed = {number for part in parts for number in range(int(part.split("-")[0]), int(part.split("-")[-1]) + 1)}
    assert parsed <= ranks
    assert parsed == ranks or text.endswith(",…")
