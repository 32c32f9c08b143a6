from muster.engine.steady_clock import create_steady_clock


def test_it_begins_now_and_goes_on_by_the_monotonic_clock() -> None:
    monotonic = iter([50.0, 50.0, 53.5])
    clock = create_steady_clock(1_763_697_900.0, lambda: next(monotonic))
    assert [clock(), clock()] == [1_763_697_900.0, 1_763_697_903.5]
