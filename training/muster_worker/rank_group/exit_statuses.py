"""Exit statuses of processes that the agent has reaped, for ranks whose wrapper was killed."""

from __future__ import annotations

from typing import Dict, Optional

from muster_worker.machine.processes import ProcessExit

MAX_ENTRIES = 4096
"""Maximum number of entries: the agent may adopt very many orphans."""


class ExitStatuses:
    """The newest exit statuses by pid."""

    def __init__(self) -> None:
        self._ends: Dict[int, ProcessExit] = {}

    def add(self, end: ProcessExit) -> None:
        """Add an exit status. It replaces the status of an older process with the same pid."""
        self._ends.pop(end.pid, None)
        self._ends[end.pid] = end
        if len(self._ends) > MAX_ENTRIES:
            del self._ends[next(iter(self._ends))]

    def get(self, pid: int) -> Optional[ProcessExit]:
        """Return the exit status of a process; None if it is unknown or was dropped."""
        return self._ends.get(pid)
