"""The collectives of a rank that hangs, as its agent reports them. Part of the protocol in `schema.py`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

MAX_GROUPS = 4
"""Maximum number of process groups of a rank in a report."""

MAX_COLLECTIVE_CHARS = 64
"""Maximum length of the name of a process group or of a collective."""


@dataclass(frozen=True)
class GroupCollective:
    """The collective that a rank entered last in a process group, from torch's flight recorder.

    The pending collective is the first collective in this group that the rank entered and that has not completed. torch
    numbers the collectives of a group, so that they have the same numbers on all ranks.
    """

    group: str  # torch's name, with its description if it has one: "0 (default_pg)"
    operation: str  # "all_reduce"
    sequence: int
    pending_operation: Optional[str] = None
    pending_sequence: Optional[int] = None

    @property
    def text(self) -> str:
        return name_collective(self.operation, self.sequence, self.group)


def name_collective(operation: str, sequence: int, group: str) -> str:
    """Name a collective for users: "all_reduce 7 of process group 0 (default_pg)"."""
    return f"{operation} {sequence} of process group {group}"
