"""Run `muster explain`: print every setting that muster adds to a job, with its value, source and reason."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from muster.api.document import escape_unprintable
from muster.api.spec.job import Job
from muster.cli.backends import get_commands
from muster.cli.errors import BadInput
from muster.cli.explain.explanation import Explanation

if TYPE_CHECKING:
    from muster.api.config.operator import OperatorConfig

_SHOWN_CHARS = 60
"""Maximum number of characters of a value on a terminal."""

_LINE_CHARS = 40
"""Maximum number of characters of a value in a line of plain text. A longer value follows below its line."""

_FOLD_CHARS = 100
_BELOW = "..."
_BELOW_INDENT = " " * 6

_MAX_WIDTHS = (40, _LINE_CHARS, 40, 1000)
"""Maximum width of each column. Longer text shifts only the rest of its line."""

_COLUMNS = ("SETTING", "VALUE", "FROM", "WHY")


def explain_job(
    job: Job, node: int, config: OperatorConfig | None = None, field_origins: Sequence[Explanation] = ()
) -> None:
    """Print the settings of a node: as tables on a terminal, else as lines that tools can parse.

    For a SageMaker job, print the fields of its request. `config` is None if the operator's configuration is unknown.
    `field_origins` are printed first.
    """
    if node >= job.spec.max_nodes:
        spares = "; its spares have the same pod as node 0" if job.spec.spares else ""
        raise BadInput(f"--node {node}: the job has the nodes 0 to {job.spec.max_nodes - 1}{spares}")
    result = [*field_origins, *get_commands(job).explain(job, node, config)]
    console = Console(file=sys.stdout, highlight=False)
    if console.is_terminal:
        console.print(*build_tables(result))
    else:
        sys.stdout.write(format_plain_text(result))


def format_plain_text(entries: Sequence[Explanation]) -> str:
    """Format each setting as a line with columns, and a long value as lines below it."""
    rows = [_format_cells(entry) for entry in entries]
    widths = [
        max(len(text) for text in column if len(text) <= max_width)
        for column, max_width in zip(zip(*rows, strict=True), _MAX_WIDTHS, strict=True)
    ]
    lines: list[str] = []
    for group, members in groupby(entries, key=lambda entry: entry.group):
        lines += ["", group] if lines else [group]
        for entry in members:
            setting, value, *other_cells = _format_cells(entry)
            is_long = len(value) > _LINE_CHARS
            cells = (setting, _BELOW if is_long else value, *other_cells)
            line = "  ".join(text.ljust(width) for text, width in zip(cells, widths, strict=True))
            lines.append(f"  {line}".rstrip())
            lines += _fold_value(value) if is_long else ()
    return "\n".join(lines) + "\n"


def _fold_value(value: str) -> list[str]:
    starts = range(0, len(value), _FOLD_CHARS)
    return [f"{_BELOW_INDENT}{value[start : start + _FOLD_CHARS]}" for start in starts]


def _format_cells(entry: Explanation) -> tuple[str, str, str, str]:
    return entry.setting, escape_unprintable(entry.value), entry.source, entry.reason


def build_tables(entries: Sequence[Explanation]) -> list[RenderableType]:
    """Build a table for each group of settings."""
    parts: list[RenderableType] = []
    for group, members in groupby(entries, key=lambda entry: entry.group):
        table = Table(box=None, title=group, title_justify="left", title_style="bold", pad_edge=False)
        for name in _COLUMNS:
            table.add_column(name, overflow="fold", header_style="dim")
        for entry in members:
            setting, value, source, why = _format_cells(entry)
            value_text = Text(value)
            value_text.truncate(_SHOWN_CHARS, overflow="ellipsis")
            table.add_row(Text(setting, style="cyan"), value_text, Text(source, style="dim"), Text(why))
        parts += [table, Text()]
    return parts
