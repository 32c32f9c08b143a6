import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.collector.heartbeat import MAX_REPORTS_PER_SECOND, compute_heartbeat_seconds, compute_namespace_rate
from muster.collector.server.limits import Rate, RequestLimiter


def test_a_burst_passes_and_then_only_the_rate() -> None:
    limiter = RequestLimiter(Rate(per_second=2.0, burst=3.0), max_keys=10)

    assert [limiter.take_token("a", 0.0) for _ in range(4)] == [0.0, 0.0, 0.0, 0.5]
    assert limiter.take_token("a", 0.5) == 0.0
    assert limiter.take_token("a", 0.5) > 0.0
    assert limiter.take_token("b", 0.5) == 0.0


def test_looking_takes_nothing() -> None:
    limiter = RequestLimiter(Rate(per_second=1.0, burst=1.0), max_keys=10)

    assert not limiter.is_empty("a", 0.0)
    assert len(limiter) == 0
    limiter.take_token("a", 0.0)
    assert limiter.is_empty("a", 0.5)
    assert not limiter.is_empty("a", 1.0)


def test_the_key_that_was_used_longest_ago_is_forgotten() -> None:
    limiter = RequestLimiter(Rate(per_second=1.0, burst=1.0), max_keys=2)
    for key in ("a", "b", "a", "c"):
        limiter.take_token(key, 0.0)

    assert len(limiter) == 2
    assert limiter.is_empty("a", 0.0)
    assert not limiter.is_empty("b", 0.0)


@settings(deadline=None)
@given(st.lists(st.floats(0.0, 1e6), min_size=1, max_size=200))
def test_burst_and_rate_are_never_exceeded_even_if_the_clock_jumps(moments: list[float]) -> None:
    limiter = RequestLimiter(Rate(per_second=1.0, burst=5.0), max_keys=1)
    passed = sum(limiter.take_token("a", moment) == 0.0 for moment in moments)
    forward = sum(max(0.0, later - earlier) for earlier, later in itertools.pairwise(moments))

    assert passed <= 5.0 + forward + 1e-6


@pytest.mark.parametrize(("agents", "seconds"), [(0, 1.0), (1, 1.0), (250, 1.0), (1000, 4.0), (5_000, 20.0)])
def test_the_pace_follows_the_number_of_agents(agents: int, seconds: float) -> None:
    assert compute_heartbeat_seconds(agents) == seconds


@settings(deadline=None)
@given(st.integers(0, 7_500))
def test_all_agents_together_stay_in_the_budget(agents: int) -> None:
    assert agents / compute_heartbeat_seconds(agents) <= MAX_REPORTS_PER_SECOND + 1e-6


@pytest.mark.parametrize(
    ("agents", "seconds"),
    [
        ([], []),
        ([100, 150], [1.0, 1.0]),
        ([500], [2.0]),
        # The smaller ones get what they need, and the larger ones the rest.
        ([50, 800], [1.0, 4.0]),
        ([50, 400, 800], [1.0, 4.0, 8.0]),
        ([500] * 5, [10.0] * 5),
        ([2, 100_000], [1.0, 30.0]),
    ],
)
def test_namespaces_share_the_rate(agents: list[int], seconds: list[float]) -> None:
    rate = compute_namespace_rate(agents)
    assert [compute_heartbeat_seconds(count, rate) for count in agents] == pytest.approx(seconds)


@settings(deadline=None)
@given(st.lists(st.integers(1, 3_000), max_size=30))
def test_all_namespaces_together_stay_in_the_budget_and_use_it(agents: list[int]) -> None:
    rate = compute_namespace_rate(agents)
    wanted = sum(min(count, rate) for count in agents)
    assert wanted == pytest.approx(min(sum(agents), MAX_REPORTS_PER_SECOND))


def test_no_agent_waits_longer_than_half_a_minute() -> None:
    assert compute_heartbeat_seconds(10**9) == 30.0
