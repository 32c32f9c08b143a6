"""The history of metrics with a bounded number of points."""

from hypothesis import given
from hypothesis import strategies as st

from muster.cli.board.metric_curves import MAX_CURVES, MAX_POINTS, MetricCurve, MetricCurves, add_values


def add_all(*rows: tuple[float, dict[str, float]]) -> MetricCurves:
    curves = MetricCurves()
    for seconds, values in rows:
        curves = add_values(curves, seconds, values)
    return curves


def test_each_metric_has_a_curve_from_its_first_value() -> None:
    curves = add_all((0.0, {"loss": 3.0}), (1.0, {"loss": 2.0, "accuracy": 0.5}))
    assert curves.curves == (MetricCurve("loss", (0.0, 1.0), (3.0, 2.0)), MetricCurve("accuracy", (1.0,), (0.5,)))


def test_a_time_without_change_is_two_points() -> None:
    curves = add_all(*((float(second), {"loss": 3.0}) for second in range(9)), (9.0, {"loss": 1.0}))
    assert curves.curves == (MetricCurve("loss", (0.0, 8.0, 9.0), (3.0, 3.0, 1.0)),)


def test_the_number_of_curves_is_bounded() -> None:
    curves = add_all((0.0, {f"metric-{number}": 1.0 for number in range(MAX_CURVES + 3)}))
    assert [curve.name for curve in curves.curves] == [f"metric-{number}" for number in range(MAX_CURVES)]


@given(st.integers(1, 3000), st.floats(0.01, 100.0))
def test_a_long_run_keeps_its_begin_and_its_newest_value(count: int, step: float) -> None:
    rows = [(number * step, float(number)) for number in range(count)]
    curve = add_all(*((seconds, {"loss": value}) for seconds, value in rows)).curves[0]

    assert len(curve.values) <= MAX_POINTS
    assert len(curve.values) >= min(count, MAX_POINTS // 3)
    assert (curve.values[0], curve.values[-1]) == (0.0, rows[-1][1])
    assert list(curve.seconds) == sorted(curve.seconds)
