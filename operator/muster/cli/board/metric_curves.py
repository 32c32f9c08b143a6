"""The history of a run's metrics as curves with a bounded number of points. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from muster.api.status.status import Status

MAX_POINTS = 240
"""A curve with more points loses every second one."""

MAX_CURVES = 12

STEPS_PER_SECOND = "steps/s"
"""The name of the curve of the speed, beside the metrics of the job."""


@dataclass(frozen=True)
class MetricCurve:
    """The values of a metric at the `seconds` since the begin of the run."""

    name: str
    seconds: tuple[float, ...] = ()
    values: tuple[float, ...] = ()


@dataclass(frozen=True)
class MetricCurves:
    """All curves, in the order in which the metrics appeared. Points are at least `interval_seconds` apart."""

    curves: tuple[MetricCurve, ...] = ()
    interval_seconds: float = 0.0


def read_values(status: Status) -> dict[str, float]:
    """Return the metrics of the job, and its speed."""
    progress = status.progress
    if progress is None:
        return {}
    speed = {} if progress.steps_per_second is None else {STEPS_PER_SECOND: progress.steps_per_second}
    metrics = {name: value for name, value in progress.metrics.items() if math.isfinite(value)}
    return {**metrics, **speed}


def add_values(curves: MetricCurves, seconds: float, values: Mapping[str, float]) -> MetricCurves:
    """Return the curves with these values, `seconds` after the begin of the run.

    A value that comes too soon after the last one replaces it. So does one that equals the last two: the curve has only
    the begin and the end of a time without change.
    """
    known = {curve.name for curve in curves.curves}
    new = [MetricCurve(name) for name in values if name not in known]
    all_curves = (*curves.curves, *new)[:MAX_CURVES]
    interval = curves.interval_seconds
    result = tuple(
        _add_point(curve, seconds, values[curve.name], interval) if curve.name in values else curve
        for curve in all_curves
    )
    if any(len(curve.values) > MAX_POINTS for curve in result):
        interval = max(2 * interval, seconds / MAX_POINTS)
        result = tuple(_drop_every_second(curve) for curve in result)
    return MetricCurves(result, interval)


def _add_point(curve: MetricCurve, seconds: float, value: float, interval: float) -> MetricCurve:
    time = round(seconds, 1)
    is_flat = curve.values[-2:] == (value, value)
    # Compare with the point before: the last one may have been replaced.
    is_soon = len(curve.seconds) > 1 and time - curve.seconds[-2] < interval
    kept = len(curve.values) - (1 if is_flat or is_soon else 0)
    return MetricCurve(curve.name, (*curve.seconds[:kept], time), (*curve.values[:kept], value))


def _drop_every_second(curve: MetricCurve) -> MetricCurve:
    if len(curve.values) <= MAX_POINTS // 2:
        return curve
    # Keep the last point, which is the newest value.
    return MetricCurve(
        curve.name,
        (*curve.seconds[:-1:2], curve.seconds[-1]),
        (*curve.values[:-1:2], curve.values[-1]),
    )
