"""The table of `muster list` and `muster top`. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from rich.cells import cell_len, set_cell_size

from muster.api.plurals import pluralize
from muster.cli.board.view import format_elapsed, format_number
from muster.cli.listing.rows import Attention, JobRow

_GAP = "  "
_ELLIPSIS = "…"
_MIN_MESSAGE_CELLS = 20
"""A narrower terminal wraps the lines instead."""

_NUMBERS = frozenset({"ATTEMPT", "RESTARTS", "PERCENT", "REMAINING", "NODES", "STEP", "STEPS/S"})

_MINUTE, _HOUR, _DAY = 60, 3600, 86400

_COUNTS: Mapping[Attention, str] = MappingProxyType(
    {
        Attention.STALLED: "stalled",
        Attention.FAILED: "failed",
        Attention.RESTARTING: "restarting",
        Attention.SLOW: "slow",
        Attention.RUNNING: "running",
        Attention.WAITING: "waiting",
        Attention.ENDED: "ended or suspended",
    }
)


@dataclass(frozen=True)
class TableOptions:
    """Which columns the table has. `width` is the terminal's, None for a file; `wide` adds columns."""

    has_namespaces: bool = False
    is_wide: bool = False
    width: int | None = None


def format_table(rows: Sequence[JobRow], options: TableOptions, now: float) -> list[str]:
    """Return the title's line and a line for each job. Messages are shortened to the terminal's width."""
    titles = _list_titles(options)
    cells = [[_CELLS[title](row, now) for title in titles] for row in rows]
    widths = [max(cell_len(line[index]) for line in (titles, *cells)) for index in range(len(titles))]
    lines = [
        _GAP.join(_align(text, title, width) for text, title, width in zip(line, titles, widths, strict=True))
        for line in (titles, *cells)
    ]
    if options.width is None or options.is_wide:
        return [line.rstrip() for line in lines]
    before_message = sum(widths[:-1]) + len(_GAP) * (len(widths) - 1)
    limit = max(options.width, before_message + _MIN_MESSAGE_CELLS)
    return [shorten(line.rstrip(), limit) for line in lines]


def format_counts(rows: Sequence[JobRow]) -> str:
    """Return the number of jobs, and how many need attention: `3 jobs: 1 stalled, 2 running`."""
    counts = Counter(row.attention for row in rows)
    parts = [f"{counts[attention]} {text}" for attention, text in _COUNTS.items() if counts[attention]]
    return f"{pluralize(len(rows), 'job')}{': ' if parts else ''}{', '.join(parts)}"


def shorten(line: str, cells: int) -> str:
    """Return the line with at most this number of terminal cells; a shortened line ends with an ellipsis."""
    return line if cell_len(line) <= cells else set_cell_size(line, cells - 1).rstrip() + _ELLIPSIS


def format_age(seconds: float) -> str:
    """Format an age as kubectl does: 42s, 5m12s, 3h, 2d4h, 45d."""
    count = max(0, int(seconds))
    if count < 2 * _MINUTE:
        return f"{count}s"
    if count < 3 * _HOUR:
        return _format_units(count, (_MINUTE, "m"), (1, "s"), 10 * _MINUTE)
    if count < 2 * _DAY:
        return _format_units(count, (_HOUR, "h"), (_MINUTE, "m"), 8 * _HOUR)
    return _format_units(count, (_DAY, "d"), (_HOUR, "h"), 8 * _DAY)


def _format_units(count: int, large: tuple[int, str], small: tuple[int, str], exact_below: int) -> str:
    whole, rest = divmod(count, large[0])
    part = rest // small[0]
    return f"{whole}{large[1]}{part}{small[1]}" if count < exact_below and part else f"{whole}{large[1]}"


def _list_titles(options: TableOptions) -> list[str]:
    return [
        *(["NAMESPACE"] if options.has_namespaces else []),
        *("NAME", "BACKEND", "PHASE"),
        *(["NODES"] if options.is_wide else []),
        *("RANKS", "ATTEMPT", "RESTARTS"),
        *(["STEP", "STEPS/S"] if options.is_wide else []),
        *("PERCENT", "REMAINING", "AGE", "MESSAGE"),
    ]


def _align(text: str, title: str, width: int) -> str:
    padding = " " * (width - cell_len(text))
    return padding + text if title in _NUMBERS else text + padding


def _format_count(value: int | None) -> str:
    return "-" if value is None else str(value)


def _format_percent(row: JobRow) -> str:
    percent = row.status.progress.percent if row.status.progress is not None else None
    return "-" if percent is None else f"{percent} %"


def _format_pace(row: JobRow) -> str:
    pace = row.status.progress.steps_per_second if row.status.progress is not None else None
    return "-" if pace is None else format_number(pace)


def _format_remaining(row: JobRow) -> str:
    return format_elapsed(row.remaining_seconds) if row.remaining_seconds else "-"


_CELLS: Mapping[str, Callable[[JobRow, float], str]] = MappingProxyType(
    {
        "NAMESPACE": lambda row, _: row.namespace,
        "NAME": lambda row, _: row.name,
        "BACKEND": lambda row, _: row.backend,
        "PHASE": lambda row, _: row.status.phase,
        "NODES": lambda row, _: _format_count(row.nodes),
        "RANKS": lambda row, _: row.status.ranks.ready if row.status.ranks is not None else "-",
        "ATTEMPT": lambda row, _: str(row.status.attempt),
        "RESTARTS": lambda row, _: str(row.status.restarts.total if row.status.restarts is not None else 0),
        "STEP": lambda row, _: _format_count(row.status.progress.step if row.status.progress is not None else None),
        "STEPS/S": lambda row, _: _format_pace(row),
        "PERCENT": lambda row, _: _format_percent(row),
        "REMAINING": lambda row, _: _format_remaining(row),
        "AGE": lambda row, now: "-" if row.created_at is None else format_age(now - row.created_at),
        "MESSAGE": lambda row, _: row.status.message,
    }
)
