"""Parse, select and format lines of the agents' output. Pure."""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from rich.text import Text

from muster.cli.board.board import get_rank_colour

_PREFIX = re.compile(r"\[(?:rank (?P<rank>\d{1,9})|(?P<source>[a-z]+(?:\.[a-z]+)?))\] ?")


@dataclass(frozen=True)
class OutputLine:
    """A line and its origin: a rank, or the launcher or agent `source` if `rank` is None."""

    node: str
    source: str
    rank: int | None
    text: str


def parse_line(node: str, line: str) -> OutputLine:
    """Split a line of an agent's output into its prefix and the rest."""
    match = _PREFIX.match(line)
    if match is None:
        return OutputLine(node, "agent", None, line)
    text = line[match.end() :]
    if match["rank"] is not None:
        return OutputLine(node, f"rank {match['rank']}", int(match["rank"]), text)
    return OutputLine(node, match["source"], None, text)


def should_show(line: OutputLine, ranks: AbstractSet[int]) -> bool:
    """Whether to show the line; `ranks` are the requested ranks. If there are none, show all ranks and launchers."""
    return not ranks or line.rank in ranks


def format_coloured(line: OutputLine) -> Text:
    """Format the line for a terminal: a coloured prefix, the text in its own colours, without cursor movements."""
    text = Text.from_ansi(line.text.replace("\r", ""))
    if line.rank is not None:
        return Text.assemble((f"[rank {line.rank}] ", get_rank_colour(line.rank)), text)
    return Text.assemble((f"[{line.node} {line.source}] ", "dim"), text)


def format_plain(line: OutputLine) -> str:
    """Format the line for a file."""
    source = f"rank {line.rank}" if line.rank is not None else f"{line.node} {line.source}"
    return f"[{source}] {line.text}"


def strip_control_sequences(text: str) -> str:
    """Return the visible text of a rank's output, without colours and cursor movements."""
    return "".join(char for char in Text.from_ansi(text).plain.expandtabs() if char.isprintable())
