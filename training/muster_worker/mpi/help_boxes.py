"""Shortens Open MPI's error messages: paragraphs between rules, too long for a report. Pure."""

from __future__ import annotations

import re
from typing import Sequence, Tuple

from muster_worker.contract.schema import MAX_LAST_LINES

_RULE = re.compile("-{74}|-{76}")
"""As printed by Open MPI 4.1 and 5.0; 4.1 uses 76 for errors in the command line."""


def error_lines(lines: Sequence[str]) -> Tuple[str, ...]:
    """The last of the non-empty `lines` that fit a report; the beginning of the last box if it doesn't fit.

    Consecutive boxes count as one: the first sentence of the first box states the error.
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
