"""What Open MPI's mpirun says at its end: paragraphs between rules, longer than a report has room for. Pure."""

from __future__ import annotations

import re
from typing import Sequence, Tuple

from muster_worker.contract.schema import MAX_LAST_LINES

_RULE = re.compile("-{74}|-{76}")
"""Open MPI 4.1 and 5.0 as seen: 76 around what is wrong with the command line of 4.1."""


def telling_lines(lines: Sequence[str]) -> Tuple[str, ...]:
    """As many of `lines`, which have none that is empty, as a report carries: the last ones, or their last box's first.

    Boxes that follow one another are one: the first of them says what is wrong, in its first sentence.
    """
    start = len(lines)
    while start and _RULE.fullmatch(lines[start - 1]):
        opening = next((index for index in range(start - 2, -1, -1) if _RULE.fullmatch(lines[index])), None)
        if opening is None:
            break
        start = opening
    if len(lines) - start <= MAX_LAST_LINES:
        return tuple(lines[-MAX_LAST_LINES:])
    return tuple(lines[start + 1 : start + 1 + MAX_LAST_LINES])
