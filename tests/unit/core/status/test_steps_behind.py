"""Counts that were read at different times are compared at one time."""

from hypothesis import given
from hypothesis import strategies as st

from muster.core.status.steps_behind import StepCount, compare_step_counts


def test_one_who_was_heard_later_is_not_ahead() -> None:
    counts = (StepCount(0, 441, 30.9, 31.0), StepCount(1, 411, 29.5, 29.6))
    assert compare_step_counts(counts, 22.0) == {0: 0, 1: 0}


def test_one_who_stands_still_is_behind() -> None:
    counts = (StepCount(0, 441, 30.9, 31.0), StepCount(1, 300, 25.0, 31.0))
    assert compare_step_counts(counts, 22.0) == {0: 0, 1: 141}


def test_all_who_stand_still_at_one_step_are_level() -> None:
    counts = (StepCount(0, 100, 10.0, 31.0), StepCount(1, 100, 10.1, 29.0))
    assert compare_step_counts(counts, 22.0) == {0: 0, 1: 0}


def test_without_a_pace_only_one_report_is_compared_with_itself() -> None:
    counts = (StepCount(0, 50, 5.0, 5.0), StepCount(1, 5, 5.0, 5.0), StepCount(2, 1, 1.0, 1.0))
    assert compare_step_counts(counts, None) == {0: 0, 1: 45, 2: 0}


def test_without_ranks_no_rank_is_behind() -> None:
    assert compare_step_counts((), None) == {}
    assert compare_step_counts((), 3.0) == {}


@given(
    pace=st.floats(0.1, 1000),
    moments=st.lists(st.floats(0, 30), min_size=1, max_size=8),
    lateness=st.floats(0, 0.25),
)
def test_ranks_in_step_are_never_behind(pace: float, moments: list[float], lateness: float) -> None:
    """Ranks that all take their n-th step at n / pace, read at any time, a little late."""
    counts = []
    for rank, moment in enumerate(moments):
        step = int(moment * pace)
        counts.append(StepCount(rank, step, step / pace + (lateness if rank % 2 else 0), moment + lateness))

    assert set(compare_step_counts(counts, pace).values()) == {0}
