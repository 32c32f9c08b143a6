"""Progress of all jobs stays within its rate; state changes never wait, and don't block progress forever."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.controller.status.write_budget import MAX_DEBT_SECONDS, PER_SECOND, WriteBudget


def test_who_comes_alone_writes_at_once() -> None:
    budget = WriteBudget()
    assert [budget.reserve(at, "team") for at in (0.0, 2.0, 4.0)] == [0.0, 2.0, 4.0]


def test_a_thousand_at_once_are_spread_over_the_seconds_that_they_take() -> None:
    budget = WriteBudget(per_second=50.0)
    turns = [budget.reserve(100.0, "team") for _ in range(1000)]
    assert turns == sorted(turns)
    assert max(turns) == turns[-1]
    assert abs(turns[-1] - (100.0 + 999 / 50.0)) < 1e-6


def most_within_a_second(turns: list[float]) -> int:
    # The last one of a second may be at its very end, by the last digits of floats.
    return max((sum(turn <= other < turn + 0.999 for other in turns) for turn in turns), default=0)


@given(st.lists(st.floats(0.0, 0.02), max_size=300))
def test_no_second_has_more_than_the_rate(gaps: list[float]) -> None:
    budget, now, turns = WriteBudget(), 0.0, []
    for gap in gaps:
        now += gap
        turns.append(budget.reserve(now, "team"))
    assert most_within_a_second(turns) <= PER_SECOND


@pytest.mark.parametrize("namespaces", [1, 4])
def test_twice_the_rate_is_brought_down_to_the_rate(namespaces: int) -> None:
    budget = WriteBudget()
    turns = [budget.reserve(number / (2 * PER_SECOND), f"team-{number % namespaces}") for number in range(500)]
    # The first one finds no other waiting namespace, and its next turn comes as soon as if it were alone.
    assert PER_SECOND - 1 <= most_within_a_second(turns) <= PER_SECOND + namespaces - 1


def test_news_makes_progress_wait_a_little_and_never_long() -> None:
    budget = WriteBudget(per_second=10.0)
    for _ in range(20):
        budget.spend(50.0, "team")
    assert budget.reserve(50.0, "team") > 50.0
    for _ in range(100_000):
        budget.spend(50.0, "team")
    assert budget.reserve(50.0, "team") <= 50.0 + MAX_DEBT_SECONDS


def test_namespaces_share_the_rate_although_one_of_them_has_reservations() -> None:
    budget = WriteBudget(per_second=50.0)
    for _ in range(1000):
        budget.reserve(100.0, "evil")
        budget.spend(100.0, "evil")
    assert [budget.reserve(100.0, "victim") for _ in range(3)] == pytest.approx([100.0, 100.0 + 2 / 50, 100.0 + 4 / 50])
    # The others' share decreases while it writes, and increases again.
    assert budget.reserve(200.0, "evil") == 200.0
    assert budget.reserve(200.0, "evil") == 200.0 + 1 / 50
