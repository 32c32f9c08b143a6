"""A waiting job soon gets its turn, and none exceeds its share for long."""

import pytest

from muster.controller.jobs.reconcile_delay import BURST_SECONDS, CORE_FRACTION, CpuShare


def test_the_turns_of_a_start_follow_one_another_at_once() -> None:
    share = CpuShare()
    assert [share.get_delay(0.02, float(turn) / 10) for turn in range(20)] == [0.0] * 20


@pytest.mark.parametrize("took", [0.01, 0.3, 4.0])
def test_in_the_long_run_a_job_takes_its_share(took: float) -> None:
    share, now, used = CpuShare(), 0.0, 0.0
    while now < 1000.0:
        now += took
        used += took
        now += share.get_delay(took, now)
    assert used <= BURST_SECONDS + CORE_FRACTION * now + took


def test_what_is_saved_is_bounded_and_a_clock_set_back_takes_nothing() -> None:
    share = CpuShare()
    share.get_delay(0.5, 100.0)
    assert share.get_delay(BURST_SECONDS, 1e6) == 0.0
    assert share.get_delay(0.0, 0.0) == 0.0
    assert share.get_delay(0.1, 0.0) == pytest.approx(0.1 / CORE_FRACTION)
