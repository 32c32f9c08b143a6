"""Shortens Open MPI's error messages for a report. Each message is a box: text between two lines of dashes. Pure."""

from __future__ import annotations

import re
from typing import Sequence, Tuple

from muster_worker.contract.schema import MAX_LAST_LINES

_RULE = re.compile("-{74}|-{76}")
"""The lines of dashes of Open MPI 4.1 and 5.0. Version 4.1 prints 76 dashes for errors in the command line."""


def select_error_lines(lines: Sequence[str]) -> Tuple[str, ...]:
    """Return the last of the non-empty `lines`, as many as a report may have. A longer last box is cut at its end.

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
