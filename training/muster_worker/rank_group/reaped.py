"""How processes ended that the agent has reaped: one of them may turn out to be a rank whose wrapper was lost."""

from __future__ import annotations

from typing import Dict, Optional

from muster_worker.machine.processes import Ended

MOST = 4096
"""Whoever adopts orphans may get very many."""


class Reaped:
    """The newest ends, by process."""

    def __init__(self) -> None:
        self._ends: Dict[int, Ended] = {}

    def add(self, end: Ended) -> None:
        """Remember it, instead of an older process's with that number."""
        self._ends.pop(end.pid, None)
        self._ends[end.pid] = end
        if len(self._ends) > MOST:
            del self._ends[next(iter(self._ends))]

    def get(self, pid: int) -> Optional[Ended]:
        """The end of a process; None when it is not known, or not any more."""
        return self._ends.get(pid)
