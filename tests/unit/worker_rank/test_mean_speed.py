import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster_worker.contract.trainer_status import MAX_STEPS_PER_SECOND, MIN_STEPS_PER_SECOND
from muster_worker.rank_group.mean_speed import MAX_SAMPLES, SpeedSamples


def test_one_step_has_no_speed() -> None:
    assert SpeedSamples().steps_per_second is None
    assert SpeedSamples().add(1, 5.0).steps_per_second is None
    assert SpeedSamples().add(1, 5.0).add(1, 6.0).steps_per_second is None


def test_slow_first_steps_stop_to_count() -> None:
    samples = SpeedSamples().add(1, 0.0).add(2, 30.0)
    for step in range(3, 203):
        samples = samples.add(step, 30.0 + (step - 2) * 0.5)
    assert samples.steps_per_second == pytest.approx(2.0)


def test_a_count_that_begins_again_has_new_samples() -> None:
    samples = SpeedSamples().add(1, 0.0).add(100, 1.0).add(1, 2.0).add(3, 3.0)
    assert samples.steps_per_second == pytest.approx(2.0)


def test_steps_of_the_script_and_counted_steps_do_not_mix() -> None:
    samples = SpeedSamples().add(5, 0.0).add(5005, 1.0, is_reported=True).add(5007, 2.0, is_reported=True)
    assert samples.steps_per_second == pytest.approx(2.0)


@given(st.lists(st.tuples(st.integers(0, 2**63 - 1), st.floats(0, 1e9)), max_size=200))
def test_the_collector_accepts_the_speed_whatever_a_rank_writes(steps: list[tuple[int, float]]) -> None:
    samples = SpeedSamples()
    for step, at in steps:
        samples = samples.add(step, at)
        assert len(samples.samples) <= MAX_SAMPLES
        speed = samples.steps_per_second
        assert speed is None or MIN_STEPS_PER_SECOND <= speed <= MAX_STEPS_PER_SECOND


def test_a_steady_speed_is_found_after_many_samples() -> None:
    samples = SpeedSamples()
    for step in range(10_000):
        samples = samples.add(step, step / 4)
    assert samples.steps_per_second == pytest.approx(4.0)
