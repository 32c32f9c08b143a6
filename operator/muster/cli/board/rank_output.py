"""The last lines and stacks of one rank, from a node's log. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from muster.cli.board.latest_stacks import LatestStacks
from muster.cli.board.rank_lines import parse_line, strip_control_sequences

MAX_LAST_LINES = 100


@dataclass(frozen=True)
class RankOutput:
    """The last lines of a rank's output, and its last stacks if it hung; oldest first."""

    last_lines: tuple[str, ...] = ()
    stack_lines: tuple[str, ...] = ()


def read_rank_output(node: str, rank: int, log: Iterable[str]) -> RankOutput:
    """Find the rank's output in the lines of the log of `node`."""
    last_lines: deque[str] = deque(maxlen=MAX_LAST_LINES)
    stacks = LatestStacks()
    for text in log:
        stacks.add(text)
        line = parse_line(node, text)
        if line.rank == rank:
            last_lines.append(line.text)
    return RankOutput(tuple(strip_control_sequences(text) for text in last_lines), tuple(stacks.lines.get(rank, ())))
