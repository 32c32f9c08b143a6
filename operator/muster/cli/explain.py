"""`muster explain`: every setting that muster adds to a job, its value, where it comes from, and why."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import groupby

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from muster.api.operator_config import OperatorConfig
from muster.api.spec import Job
from muster.cli.backends import commands_of
from muster.cli.explanation import Explanation
from muster.cli.problem import BadInput
from muster.cli.render import one_line

_SHOWN_CHARS = 60
"""Of a longer value a terminal shows the beginning."""

_LINE_CHARS = 40
"""A longer value stands below its line of plain text."""

_FOLD_CHARS = 100
_BELOW = "..."
_BELOW_INDENT = " " * 6

_WIDEST = (40, _LINE_CHARS, 40, 1000)
"""Of each column's texts, which make it as wide as it is: longer ones move their own line's rest only."""

_COLUMNS = ("SETTING", "VALUE", "FROM", "WHY")


def explain_job(job: Job, node: int, config: OperatorConfig | None = None) -> None:
    """Print the tables of one node: on a terminal to be looked at, else as lines that tools can cut.

    A job of backend SageMaker has one table, of its request. `config` is the operator's (None: unknown).
    """
    if node >= job.spec.nodes:
        raise BadInput(f"--node {node}: the job has the nodes 0 to {job.spec.nodes - 1}")
    found = commands_of(job).explain(job, node, config)
    console = Console(file=sys.stdout, highlight=False)
    if console.is_terminal:
        console.print(*tables(found))
    else:
        sys.stdout.write(plain_text(found))


def plain_text(found: Sequence[Explanation]) -> str:
    """A line a setting, in columns; a long value stands whole below its line, folded."""
    rows = [_cells(each) for each in found]
    widths = [
        max(len(text) for text in column if len(text) <= most)
        for column, most in zip(zip(*rows, strict=True), _WIDEST, strict=True)
    ]
    lines: list[str] = []
    for group, members in groupby(found, key=lambda each: each.group):
        lines += ["", group] if lines else [group]
        for each in members:
            setting, value, *others = _cells(each)
            is_long = len(value) > _LINE_CHARS
            cells = (setting, _BELOW if is_long else value, *others)
            line = "  ".join(text.ljust(width) for text, width in zip(cells, widths, strict=True))
            lines.append(f"  {line}".rstrip())
            lines += _folded(value) if is_long else ()
    return "\n".join(lines) + "\n"


def _folded(value: str) -> list[str]:
    starts = range(0, len(value), _FOLD_CHARS)
    return [f"{_BELOW_INDENT}{value[start : start + _FOLD_CHARS]}" for start in starts]


def _cells(each: Explanation) -> tuple[str, str, str, str]:
    return each.setting, one_line(each.value), each.source, each.why


def tables(found: Sequence[Explanation]) -> list[RenderableType]:
    """A table a group, as wide as the terminal."""
    parts: list[RenderableType] = []
    for group, members in groupby(found, key=lambda each: each.group):
        table = Table(box=None, title=group, title_justify="left", title_style="bold", pad_edge=False)
        for name in _COLUMNS:
            table.add_column(name, overflow="fold", header_style="dim")
        for each in members:
            setting, value, source, why = _cells(each)
            shown = Text(value)
            shown.truncate(_SHOWN_CHARS, overflow="ellipsis")
            table.add_row(Text(setting, style="cyan"), shown, Text(source, style="dim"), Text(why))
        parts += [table, Text()]
    return parts
