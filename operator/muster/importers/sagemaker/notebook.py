"""Convert a notebook's code cells to Python code. Pure."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

_SYSTEM = re.compile(r"(?P<indent>\s*)!(?P<command>.*)")
_SYSTEM_ASSIGNMENT = re.compile(r"(?P<name>\s*[\w, ]+=\s*)!(?P<command>.*)")
_MAGIC = re.compile(r"(?P<indent>\s*)%(?P<magic>\w+)(?P<line>.*)")
_HELP = re.compile(r"\s*(\?{1,2}[\w.]+|[\w.]+\?{1,2})\s*")

_WRAPPING_MAGIC = frozenset({"capture", "prun", "time", "timeit"})
"""Cell magics that run the cell as Python and measure it or capture its output."""


class InvalidNotebook(Exception):
    """The text isn't a notebook of format 4. The message has the reason."""


@dataclass(frozen=True)
class ScriptPart:
    """The Python code of a notebook's cell or of a script. Messages show `name`: `launch.ipynb[3]`."""

    name: str
    text: str


def split_notebook(text: str, name: str) -> tuple[ScriptPart, ...]:
    """Return the code cells, numbered from 1 by their position in the notebook. Raises `InvalidNotebook`.

    Magics become calls of `get_ipython()`, as in Jupyter's export to a script.
    """
    try:
        cells = json.loads(text)["cells"]
        sources = [(cell["cell_type"], "".join(cell["source"])) for cell in cells]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InvalidNotebook("a notebook of format 4 is expected: JSON with its cells") from None
    return tuple(
        ScriptPart(f"{name}[{number}]", _convert_cell(source))
        for number, (kind, source) in enumerate(sources, 1)
        if kind == "code" and source.strip()
    )


def _convert_cell(cell: str) -> str:
    if cell.startswith("%%"):
        head, _, body = cell.partition("\n")
        magic, _, line = head[2:].partition(" ")
        if magic in _WRAPPING_MAGIC:
            return "\n" + _convert_cell(body)
        return f"get_ipython().run_cell_magic({magic!r}, {line.strip()!r}, {body!r})\n"
    return cell if _is_python(cell) else "".join(_convert_lines(cell))


def _is_python(cell: str) -> bool:
    """Whether the cell is Python without magics. Lines of a string in it may begin with ! or %."""
    try:
        ast.parse(cell)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        # Python's parser raises the others for null bytes and deep nesting: the cell's run reports them.
        return False
    return True


def _convert_lines(cell: str) -> Iterator[str]:
    """Convert the cell line by line, so that messages have the line numbers of the cell."""
    for line in cell.splitlines():
        if match := _SYSTEM.fullmatch(line):
            yield f"{match['indent']}get_ipython().system({match['command'].strip()!r})\n"
        elif match := _SYSTEM_ASSIGNMENT.fullmatch(line):
            yield f"{match['name']}get_ipython().getoutput({match['command'].strip()!r})\n"
        elif match := _MAGIC.fullmatch(line):
            yield f"{match['indent']}get_ipython().run_line_magic({match['magic']!r}, {match['line'].strip()!r})\n"
        elif _HELP.fullmatch(line):
            yield "\n"
        else:
            yield f"{line}\n"
