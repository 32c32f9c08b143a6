"""`muster explain`: every setting that muster adds to a job, its value, where it comes from, and why."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import groupby

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from muster.api.operator_config import OperatorConfig
from muster.api.problems import InvalidResource
from muster.api.spec import Job
from muster.backends.kubernetes.not_renderable import IMAGE_NOT_SET, NotRenderable
from muster.cli.config_file import with_config
from muster.cli.explanations import Explanation, explanations
from muster.cli.problem import BadInput
from muster.cli.render import one_line

_VALUE_CHARS = 60
"""Longer values don't widen their column; a terminal shows their beginning."""

_COLUMNS = ("SETTING", "VALUE", "FROM", "WHY")


def explain_job(job: Job, node: int, config: OperatorConfig | None = None) -> None:
    """Print the tables of one node: on a terminal to be looked at, else as lines that tools can cut.

    `config` is the operator's (None: unknown).
    """
    if node >= job.spec.nodes:
        raise BadInput(f"--node {node}: the job has the nodes 0 to {job.spec.nodes - 1}")
    try:
        found = _explained(with_config(job, config), node)
    except NotRenderable as problem:
        raise BadInput(f"not for a cluster yet: {problem}") from None
    except InvalidResource as invalid:
        raise BadInput(f"not for a cluster yet: {'; '.join(map(str, invalid.problems))}") from None
    console = Console(file=sys.stdout, highlight=False)
    if console.is_terminal:
        console.print(*tables(found))
    else:
        sys.stdout.write(plain_text(found))


def _explained(job: Job, node: int) -> Sequence[Explanation]:
    """What is said of the job, also of one without an image: which one it is changes nothing that muster adds."""
    try:
        return explanations(job, node)
    except NotRenderable as problem:
        if problem.trouble.reason != IMAGE_NOT_SET:
            raise
        sys.stderr.write(f"not for a cluster yet: {problem}\n")
        return explanations(job.model_copy(update={"spec": job.spec.model_copy(update={"image": "IMAGE"})}), node)


def plain_text(found: Sequence[Explanation]) -> str:
    """A line a setting, in columns and whole: a file has room for any value."""
    rows = [_cells(each) for each in found]
    widths = [max(len(text) for text in column if len(text) <= _VALUE_CHARS) for column in zip(*rows, strict=True)]
    lines: list[str] = []
    for group, members in groupby(found, key=lambda each: each.group):
        lines += ["", group] if lines else [group]
        for each in members:
            cells = [text.ljust(width) for text, width in zip(_cells(each), widths, strict=True)]
            lines.append(f"  {'  '.join(cells)}".rstrip())
    return "\n".join(lines) + "\n"


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
            shown.truncate(_VALUE_CHARS, overflow="ellipsis")
            table.add_row(Text(setting, style="cyan"), shown, Text(source, style="dim"), Text(why))
        parts += [table, Text()]
    return parts
