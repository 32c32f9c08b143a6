import pytest

from muster.runtime.cluster.backoff import MAX_SECONDS, Backoff


def test_pauses_grow_to_the_longest_and_begin_anew_after_a_success() -> None:
    backoff = Backoff(lambda: 0.0)
    pauses = [backoff.failure(MAX_SECONDS) for _ in range(8)]
    assert pauses == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0]
    backoff.success()
    assert backoff.failure(MAX_SECONDS) == 0.2


@pytest.mark.parametrize("chance", [0.0, 0.5, 1.0])
def test_chance_shortens_a_pause_by_half_at_most(chance: float) -> None:
    pause = Backoff(lambda: chance).failure(MAX_SECONDS)
    assert 0.1 <= pause <= 0.2


@pytest.mark.parametrize("chance", [0.0, 1.0])
def test_who_asks_for_a_pause_gets_all_of_it(chance: float) -> None:
    assert 30.0 <= Backoff(lambda: chance).failure(MAX_SECONDS, asked=30.0) <= 33.1
