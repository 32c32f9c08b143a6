from bisect import bisect_right

from hypothesis import given
from hypothesis import strategies as st

from muster.clients.aws.adaptive_rate import MAX_FACTOR, AdaptiveRate


def sent_at(pace: AdaptiveRate, arrivals: list[float]) -> list[float]:
    """Return the times at which requests that arrive at these times are sent, one after the other."""
    now, times = 0.0, []
    for arrival in sorted(arrivals):
        now = max(now, arrival)
        now += pace.compute_wait(now)
        pace.start_interval(now)
        times.append(now)
    return times


@given(
    rate=st.sampled_from([0.9, 1.0, 2.0, 4.5, 9.0]),
    arrivals=st.lists(st.floats(0, 100, allow_nan=False), min_size=1, max_size=60),
)
def test_no_second_sees_more_than_the_rate(rate: float, arrivals: list[float]) -> None:
    times = sent_at(AdaptiveRate(rate), arrivals)
    width = 1.0 - 1e-6
    most = max(bisect_right(times, time + width) - index for index, time in enumerate(times))
    assert most <= max(1, round(rate + 0.499))


@given(arrivals=st.lists(st.floats(0, 100, allow_nan=False), min_size=1, max_size=60))
def test_who_comes_late_enough_never_waits(arrivals: list[float]) -> None:
    spread = [arrival + 0.51 * index for index, arrival in enumerate(sorted(arrivals))]
    assert sent_at(AdaptiveRate(2.0), spread) == spread


def test_each_refusal_doubles_the_pause_up_to_a_limit() -> None:
    pace = AdaptiveRate(2.0)
    now, widths = 0.0, []
    for _ in range(7):
        pace.start_interval(now)
        pace.record_throttling(now)
        widths.append(pace.interval_factor)
        now += pace.compute_wait(now)
    assert widths == [2.0, 4.0, 8.0, 16.0, 32.0, MAX_FACTOR, MAX_FACTOR]
    assert pace.compute_wait(now) == 0.0


def test_answers_bring_the_pace_back_bit_by_bit() -> None:
    pace = AdaptiveRate(2.0)
    pace.start_interval(0.0)
    pace.record_throttling(0.0)
    widths = []
    for _ in range(50):
        pace.record_success()
        widths.append(pace.interval_factor)
    assert widths[0] == 1.9
    assert 1.4 < widths[6] < 1.5
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] == 1.0


def test_those_refused_together_count_once() -> None:
    pace = AdaptiveRate(4.0)
    for sent in (0.0, 0.25, 0.5):
        pace.start_interval(sent)
    for sent in (0.0, 0.25, 0.5):
        pace.record_throttling(sent)
    assert pace.interval_factor == 2.0
    pace.start_interval(1.0)
    pace.record_throttling(1.0)
    assert pace.interval_factor == 4.0
