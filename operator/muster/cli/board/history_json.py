"""The time line and the curves of a frame as JSON. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from muster.api.document import JSON
from muster.api.json_fields import read_integer, read_mapping, read_mappings, read_string
from muster.cli.board.metric_curves import MAX_CURVES, MetricCurve
from muster.cli.board.time_line import EndedAttempt, LostSeconds, TimeLine


def encode_time_line(time_line: TimeLine) -> JSON:
    """Return the time line with Unix seconds."""
    return {
        "attempts": [
            {
                "attempt": entry.attempt,
                "endedAt": entry.ended_at,
                "reason": entry.reason,
                "message": entry.message,
                "secondsLost": entry.seconds_lost,
            }
            for entry in time_line.attempts
        ],
        "productiveSeconds": time_line.productive_seconds,
        "totalSeconds": time_line.total_seconds,
        "lost": [{"cause": entry.cause, "seconds": entry.seconds} for entry in time_line.lost],
    }


def decode_time_line(value: JSON) -> TimeLine:
    """Return the time line. Fields that are missing or have another type get their defaults."""
    fields = read_mapping(value)
    return TimeLine(
        attempts=tuple(
            EndedAttempt(
                attempt=read_integer(entry.get("attempt")) or 0,
                ended_at=_read_number(entry.get("endedAt")) or 0.0,
                reason=read_string(entry.get("reason")),
                message=read_string(entry.get("message")),
                seconds_lost=_read_number(entry.get("secondsLost")),
            )
            for entry in read_mappings(fields.get("attempts"))
        ),
        productive_seconds=_read_number(fields.get("productiveSeconds")) or 0.0,
        total_seconds=_read_number(fields.get("totalSeconds")) or 0.0,
        lost=tuple(
            LostSeconds(read_string(entry.get("cause")), _read_number(entry.get("seconds")) or 0.0)
            for entry in read_mappings(fields.get("lost"))
        ),
    )


def encode_curves(curves: Sequence[MetricCurve]) -> JSON:
    """Return the curves."""
    return [{"name": curve.name, "seconds": list(curve.seconds), "values": list(curve.values)} for curve in curves]


def decode_curves(value: JSON) -> tuple[MetricCurve, ...]:
    """Return the curves, without those that are not two lists of numbers of the same length."""
    result = []
    for entry in read_mappings(value)[:MAX_CURVES]:
        seconds, values = _read_numbers(entry.get("seconds")), _read_numbers(entry.get("values"))
        if len(seconds) == len(values):
            result.append(MetricCurve(read_string(entry.get("name")), seconds, values))
    return tuple(result)


def _read_numbers(value: JSON) -> tuple[float, ...]:
    numbers = (_read_number(item) for item in (value if isinstance(value, list) else ()))
    return tuple(number for number in numbers if number is not None)


def _read_number(value: JSON) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
