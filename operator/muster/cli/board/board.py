"""Draw a run as a live board. Pure; `display.py` writes it to the terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from muster.api.amounts import amount
from muster.cli.board.view import (
    NodeRow,
    RankRow,
    View,
    clock,
    mebibytes,
    metric_parts,
    node_rows,
    pace_parts,
    rank_rows,
)
from muster.core.failure.rank_output import clean

MAX_RANK_ROWS = 32
"""With more ranks than this, the board shows a line a node."""

_CHROME_LINES = 6
"""Lines of the board other than rows: header, sentence, blank lines, column titles, notice."""

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

_LEFT_OUT_WHEN_NARROW = ("MEM", "PID", "NODE", "BEHIND")
"""Columns that a narrow terminal omits, in this order."""

RANK_COLOURS = ("cyan", "green", "yellow", "magenta", "blue", "bright_cyan", "bright_green", "bright_magenta")
"""A rank's lines have the same colour on the board and in the log."""


@dataclass(frozen=True)
class _Column:
    """A column of the ranks; `width` in terminal cells, with the gap after it."""

    title: str
    cells: tuple[Text, ...]
    width: int


def board(view: View, width: int, height: int) -> RenderableType:
    """Draw the board for a terminal of `width` columns and `height` lines."""
    rows = rank_rows(view)
    parts: list[RenderableType] = [_header(view), _sentence(view)]
    if rows:
        parts += [Text(), _rows(rows, width, height)]
    if view.notice:
        parts.append(Text(view.notice, style="bold yellow"))
    return Group(*parts)


def _rows(rows: tuple[RankRow, ...], width: int, height: int) -> RenderableType:
    lines_left = max(1, height - _CHROME_LINES)
    by_rank = len(rows) <= min(MAX_RANK_ROWS, lines_left)
    return _rank_table(rows, width) if by_rank else _node_table(node_rows(rows), lines_left)


def rank_colour(rank: int) -> str:
    """The colour of a rank."""
    return RANK_COLOURS[rank % len(RANK_COLOURS)]


def _header(view: View) -> Text:
    status = view.status
    header = Text(overflow="ellipsis", no_wrap=True)
    header.append(view.name, style="bold")
    header.append("  ")
    header.append(status.phase, style=_COLOURS.get(status.phase, ""))
    parts = [clock(view.elapsed)]
    if status.ranks is not None and status.completion_time is None:
        # the number of running ranks says nothing once the job has ended
        parts.append(f"ranks {status.ranks.ready}")
    header.append("  " + "  ·  ".join([*parts, *pace_parts(status), *metric_parts(status)]))
    return header


def _sentence(view: View) -> Text:
    return Text(view.status.message, style="dim" if view.status.phase != "Failed" else "red", overflow="fold")


def _table(columns: Sequence[str], numbers: Sequence[str], cells: Sequence[Sequence[Text]]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="dim")
    for title in columns:
        table.add_column(title, justify="right" if title in numbers else "left", no_wrap=True)
    for row in cells:
        table.add_row(*row)
    return table


def _rank_table(rows: tuple[RankRow, ...], width: int) -> Table:
    columns = [_column(title, rows) for title in ("RANK", "NODE", "STATE", "PID", "MEM", "STEP", "BEHIND")]
    # omit columns without values, so that notes get their width: a cluster's status has no memory and no pids
    if not any(row.memory for row in rows):
        columns = [column for column in columns if column.title != "MEM"]
    if all(row.pid is None for row in rows):
        columns = [column for column in columns if column.title != "PID"]
    for title in _LEFT_OUT_WHEN_NARROW:
        if sum(column.width for column in columns) <= width + _GAP:
            break
        columns = [column for column in columns if column.title != title]
    titles = [column.title for column in columns]
    cells = [[column.cells[index] for column in columns] for index in range(len(rows))]
    width_left = width - sum(column.width for column in columns)
    if width_left > 0 and any(row.note for row in rows):
        titles.append("")
        for row, cell in zip(rows, cells, strict=True):
            note = Text(clean(row.note), style="dim" if row.state != "Failed" else "red")
            # shorten a long note, not the numbers beside it
            note.truncate(width_left, overflow="ellipsis")
            cell.append(note)
    return _table(titles, ("RANK", "PID", "MEM", "STEP", "BEHIND"), cells)


def _column(title: str, rows: tuple[RankRow, ...]) -> _Column:
    cells = tuple(_RANK_CELLS[title](row) for row in rows)
    return _Column(title, cells, max([len(title), *(cell.cell_len for cell in cells)]) + _GAP)


def _node_table(rows: tuple[NodeRow, ...], lines_left: int) -> RenderableType:
    shown = rows if len(rows) <= lines_left else _with_problem_first(rows)[: lines_left - 1]
    cells = [(Text(row.node), _states(row), _count(row.step), _behind(row.behind)) for row in shown]
    table = _table(("NODE", "RANKS", "STEP", "BEHIND"), ("STEP", "BEHIND"), cells)
    if len(shown) == len(rows):
        return table
    return Group(table, Text(f"and {amount(len(rows) - len(shown), 'more node')}", style="dim"))


def _with_problem_first(rows: tuple[NodeRow, ...]) -> tuple[NodeRow, ...]:
    # healthy nodes are the ones to omit
    return tuple(sorted(rows, key=lambda row: set(row.states) <= {"Running", "Succeeded"}))


def _states(row: NodeRow) -> Text:
    parts = [
        Text(f"{_MARKS.get(state, '?')} {count} {state}", style=_COLOURS.get(state, ""))
        for state, count in sorted(row.states.items())
    ]
    return Text("  ").join(parts)


def _state(state: str) -> Text:
    return Text(f"{_MARKS.get(state, '?')} {state}", style=_COLOURS.get(state, ""))


def _count(value: int | None) -> Text:
    return Text("-", style="bright_black") if value is None else Text(str(value))


def _memory(value: int | None) -> Text:
    # 0: the process had ended when the agent measured it
    return Text(mebibytes(value)) if value else _count(None)


def _behind(value: int | None) -> Text:
    return Text(str(value), style="yellow") if value else _count(None)


_RANK_CELLS: Mapping[str, Callable[[RankRow], Text]] = {
    "RANK": lambda row: Text(str(row.rank), style=rank_colour(row.rank)),
    "NODE": lambda row: Text(row.node),
    "STATE": lambda row: _state(row.state),
    "PID": lambda row: _count(row.pid),
    "MEM": lambda row: _memory(row.memory),
    "STEP": lambda row: _count(row.step),
    "BEHIND": lambda row: _behind(row.behind),
}
