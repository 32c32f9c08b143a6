"""Draw a run as a live board. Pure; `display.py` writes it to the terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from muster.api.plurals import pluralize
from muster.cli.board.goodput_lines import format_goodput
from muster.cli.board.restart_lines import format_restarts
from muster.cli.board.source_lines import format_source
from muster.cli.board.spare_line import format_spares
from muster.cli.board.view import (
    NodeRow,
    RankRow,
    View,
    format_elapsed,
    format_mebibytes,
    format_metrics,
    format_pace,
    make_node_rows,
    make_rank_rows,
)
from muster.core.failure.rank_output import sanitize_line

MAX_RANK_ROWS = 32
"""With more ranks, the board shows one line for each node."""

_FIXED_LINES = 6
"""The number of lines that aren't rows: header, message, blank lines, column titles, notice."""

_GAP = 2
"""Spaces between two columns."""

_COLOURS = {
    "Pending": "bright_black",
    "Queued": "bright_black",
    "Starting": "yellow",
    "Running": "green",
    "Restarting": "yellow",
    "Stopping": "yellow",
    "Suspended": "blue",
    "Succeeded": "cyan",
    "Refused": "bold red",
    "Failed": "bold red",
    "Stopped": "magenta",
    "Unknown": "yellow",
}
_MARKS = {
    "Pending": "○",
    "Starting": "◔",
    "Running": "●",
    "Succeeded": "✔",
    "Failed": "✘",
    "Stopped": "■",
    "Unknown": "?",
}

_OPTIONAL_COLUMNS = ("MEM", "PID", "NODE", "BEHIND")
"""Columns that the board omits on a narrow terminal, in this order."""

RANK_COLOURS = ("cyan", "green", "yellow", "magenta", "blue", "bright_cyan", "bright_green", "bright_magenta")
"""A rank's lines have the same colour on the board and in the log."""


@dataclass(frozen=True)
class _Column:
    """A column of the table of ranks. `width` is in terminal cells, with the gap after the column."""

    title: str
    cells: tuple[Text, ...]
    width: int


def draw_board(view: View, width: int, height: int) -> RenderableType:
    """Draw the board for a terminal of `width` columns and `height` lines."""
    rows = make_rank_rows(view)
    parts: list[RenderableType] = [_draw_header(view), _draw_message(view)]
    history = [
        *(Text(line, style="yellow", overflow="ellipsis", no_wrap=True) for line in format_source(view.status)),
        *(Text(line, style="yellow", overflow="ellipsis", no_wrap=True) for line in format_restarts(view.status)),
        *(
            Text(line, style="dim", overflow="ellipsis", no_wrap=True)
            for line in (*format_spares(view.status), *format_goodput(view.status))
        ),
    ]
    parts += history
    if rows:
        parts += [Text(), _draw_rows(rows, width, height - len(history))]
    if view.notice:
        parts.append(Text(view.notice, style="bold yellow"))
    return Group(*parts)


def _draw_rows(rows: tuple[RankRow, ...], width: int, height: int) -> RenderableType:
    lines_left = max(1, height - _FIXED_LINES)
    by_rank = len(rows) <= min(MAX_RANK_ROWS, lines_left)
    return _draw_rank_table(rows, width) if by_rank else _draw_node_table(make_node_rows(rows), lines_left)


def get_rank_colour(rank: int) -> str:
    """Return the colour of a rank."""
    return RANK_COLOURS[rank % len(RANK_COLOURS)]


def _draw_header(view: View) -> Text:
    status = view.status
    header = Text(overflow="ellipsis", no_wrap=True)
    header.append(view.name, style="bold")
    header.append("  ")
    header.append(status.phase, style=_COLOURS.get(status.phase, ""))
    parts = [format_elapsed(view.elapsed_seconds)]
    if status.ranks is not None and status.completion_time is None:
        # after the end of the job, no rank runs
        parts.append(f"ranks {status.ranks.ready}")
    header.append("  " + "  ·  ".join([*parts, *format_pace(status), *format_metrics(status)]))
    return header


def _draw_message(view: View) -> Text:
    return Text(view.status.message, style="dim" if view.status.phase != "Failed" else "red", overflow="fold")


def _draw_table(columns: Sequence[str], numbers: Sequence[str], cells: Sequence[Sequence[Text]]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="dim")
    for title in columns:
        table.add_column(title, justify="right" if title in numbers else "left", no_wrap=True)
    for row in cells:
        table.add_row(*row)
    return table


def _draw_rank_table(rows: tuple[RankRow, ...], width: int) -> Table:
    columns = [_build_column(title, rows) for title in ("RANK", "NODE", "STATE", "PID", "MEM", "STEP", "BEHIND")]
    # omit empty columns to make room for notes: a cluster's status has no memory sizes or pids
    if not any(row.memory for row in rows):
        columns = [column for column in columns if column.title != "MEM"]
    if all(row.pid is None for row in rows):
        columns = [column for column in columns if column.title != "PID"]
    for title in _OPTIONAL_COLUMNS:
        if sum(column.width for column in columns) <= width + _GAP:
            break
        columns = [column for column in columns if column.title != title]
    titles = [column.title for column in columns]
    cells = [[column.cells[index] for column in columns] for index in range(len(rows))]
    width_left = width - sum(column.width for column in columns)
    if width_left > 0 and any(row.note for row in rows):
        titles.append("")
        for row, cell in zip(rows, cells, strict=True):
            note = Text(sanitize_line(row.note), style="dim" if row.state != "Failed" else "red")
            # shorten a long note, not the numbers beside it
            note.truncate(width_left, overflow="ellipsis")
            cell.append(note)
    return _draw_table(titles, ("RANK", "PID", "MEM", "STEP", "BEHIND"), cells)


def _build_column(title: str, rows: tuple[RankRow, ...]) -> _Column:
    cells = tuple(_RANK_CELLS[title](row) for row in rows)
    return _Column(title, cells, max([len(title), *(cell.cell_len for cell in cells)]) + _GAP)


def _draw_node_table(rows: tuple[NodeRow, ...], lines_left: int) -> RenderableType:
    shown_rows = rows if len(rows) <= lines_left else _sort_problems_first(rows)[: lines_left - 1]
    cells = [
        (Text(row.node), _format_states(row), _format_count(row.step), _format_behind(row.behind)) for row in shown_rows
    ]
    table = _draw_table(("NODE", "RANKS", "STEP", "BEHIND"), ("STEP", "BEHIND"), cells)
    if len(shown_rows) == len(rows):
        return table
    return Group(table, Text(f"and {pluralize(len(rows) - len(shown_rows), 'more node')}", style="dim"))


def _sort_problems_first(rows: tuple[NodeRow, ...]) -> tuple[NodeRow, ...]:
    # the board omits the last nodes, so the healthy ones come last
    return tuple(sorted(rows, key=lambda row: set(row.states) <= {"Running", "Succeeded"}))


def _format_states(row: NodeRow) -> Text:
    parts = [
        Text(f"{_MARKS.get(state, '?')} {count} {state}", style=_COLOURS.get(state, ""))
        for state, count in sorted(row.states.items())
    ]
    return Text("  ").join(parts)


def _format_state(state: str) -> Text:
    return Text(f"{_MARKS.get(state, '?')} {state}", style=_COLOURS.get(state, ""))


def _format_count(value: int | None) -> Text:
    return Text("-", style="bright_black") if value is None else Text(str(value))


def _format_memory(value: int | None) -> Text:
    # 0: the process had ended when the agent measured it
    return Text(format_mebibytes(value)) if value else _format_count(None)


def _format_behind(value: int | None) -> Text:
    return Text(str(value), style="yellow") if value else _format_count(None)


_RANK_CELLS: Mapping[str, Callable[[RankRow], Text]] = {
    "RANK": lambda row: Text(str(row.rank), style=get_rank_colour(row.rank)),
    "NODE": lambda row: Text(row.node),
    "STATE": lambda row: _format_state(row.state),
    "PID": lambda row: _format_count(row.pid),
    "MEM": lambda row: _format_memory(row.memory),
    "STEP": lambda row: _format_count(row.step),
    "BEHIND": lambda row: _format_behind(row.behind),
}
