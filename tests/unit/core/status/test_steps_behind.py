"""Step counts that were read at different times are compared at the same time."""

from hypothesis import given
from hypothesis import strategies as st

from muster.core.status.steps_behind import StepCount, compare_step_counts


def test_a_rank_with_a_later_report_is_not_ahead() -> None:
    counts = (StepCount(0, 441, 30.9, 31.0), StepCount(1, 411, 29.5, 29.6))
    assert compare_step_counts(counts, 22.0) == {0: 0, 1: 0}


def test_a_rank_that_completes_no_steps_is_behind() -> None:
    counts = (StepCount(0, 441, 30.9, 31.0), StepCount(1, 300, 25.0, 31.0))
    assert compare_step_counts(counts, 22.0) == {0: 0, 1: 141}


def test_ranks_that_stop_at_the_same_step_are_not_behind() -> None:
    counts = (StepCount(0, 100, 10.0, 31.0), StepCount(1, 100, 10.1, 29.0))
    assert compare_step_counts(counts, 22.0) == {0: 0, 1: 0}


def test_without_steps_per_second_only_counts_of_the_same_time_are_compared() -> None:
    counts = (StepCount(0, 50, 5.0, 5.0), StepCount(1, 5, 5.0, 5.0), StepCount(2, 1, 1.0, 1.0))
    assert compare_step_counts(counts, None) == {0: 0, 1: 45, 2: 0}


def test_without_ranks_no_rank_is_behind() -> None:
    assert compare_step_counts((), None) == {}
    assert compare_step_counts((), 3.0) == {}


@given(
    steps_per_second=st.floats(0.1, 1000),
    read_times=st.lists(st.floats(0, 30), min_size=1, max_size=8),
    delay=st.floats(0, 0.25),
)
def test_ranks_with_the_same_speed_are_never_behind(
    steps_per_second: float, read_times: list[float], delay: float
) -> None:
    """All ranks take step n at n / steps_per_second. Their counts are read at any time, with a small delay."""
    counts = []
    for rank, read_at in enumerate(read_times):
        step = int(read_at * steps_per_second)
        counts.append(StepCount(rank, step, step / steps_per_second + (delay if rank % 2 else 0), read_at + delay))

    assert set(compare_step_counts(counts, steps_per_second).values()) == {0}
