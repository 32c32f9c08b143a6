"""The attempts of a job and its lost time, for the board's page. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from muster.api.status.status import Status
from muster.api.timestamps import parse_untrusted_timestamp
from muster.cli.board.goodput_lines import describe_cause


@dataclass(frozen=True)
class EndedAttempt:
    """An attempt that has ended, `ended_at` in Unix seconds.

    `seconds_lost` is the time until all ranks ran again; None while they don't.
    """

    attempt: int
    ended_at: float
    reason: str
    message: str
    seconds_lost: float | None = None


@dataclass(frozen=True)
class LostSeconds:
    """The seconds that the job lost by one cause."""

    cause: str
    seconds: float


@dataclass(frozen=True)
class TimeLine:
    """The attempts that have ended, oldest first, and where the time went. `total_seconds` is 0 while unknown."""

    attempts: tuple[EndedAttempt, ...] = ()
    productive_seconds: float = 0.0
    total_seconds: float = 0.0
    lost: tuple[LostSeconds, ...] = ()


def build_time_line(status: Status) -> TimeLine:
    """Return the time line of the job."""
    goodput = status.goodput
    if goodput is None:
        return TimeLine(_list_attempts(status))
    lost = (LostSeconds(describe_cause(entry.cause), round(entry.seconds, 1)) for entry in goodput.lost)
    return TimeLine(
        _list_attempts(status),
        round(goodput.productive_seconds, 1),
        round(goodput.total_seconds, 1),
        tuple(entry for entry in lost if entry.seconds > 0),
    )


def _list_attempts(status: Status) -> tuple[EndedAttempt, ...]:
    history = status.restarts.history if status.restarts is not None else ()
    result = []
    for record in history:
        ended_at = parse_untrusted_timestamp(record.at)
        result.append(EndedAttempt(record.attempt, ended_at, record.reason, record.message, record.seconds_lost))
    return tuple(result)
