"""Which ranks the kernel killed because the node's memory limit was reached.

The kernel says so nowhere but in a counter of the processes' cgroup. A rank that died by SIGKILL while it rose was the
one; of several that died at once those that had the most memory, as many as it rose by.
"""

from __future__ import annotations

import re
import signal
from dataclasses import replace
from typing import Callable, List, Optional, Sequence, Tuple

from muster_worker.agent.state import Event, RankEnded
from muster_worker.contract.schema import EndReason

SLACK_SECONDS = 1.0
"""The counter rises before the process is gone, and a loaded machine takes its time for what lies between."""

_COUNTER = re.compile(r"^oom_kill (\d+)$", re.MULTILINE)
_ROOT = "/sys/fs/cgroup"


def counter_files(own_cgroups: str) -> Tuple[str, ...]:
    """Where the counter may be, the likeliest first. `own_cgroups` is the text of /proc/self/cgroup."""
    result = []
    for line in own_cgroups.splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            result.append(f"{_ROOT}{path.rstrip('/')}/memory.events")
        elif "memory" in controllers.split(","):
            result.append(f"{_ROOT}/memory{path.rstrip('/')}/memory.oom_control")
    # in a container the path is the machine's, and what is mounted is the container's own cgroup
    return (*result, f"{_ROOT}/memory.events", f"{_ROOT}/memory/memory.oom_control")


def read_count(text: str) -> Optional[int]:
    """The number of processes killed so far, from cgroup v2's memory.events or v1's memory.oom_control."""
    match = _COUNTER.search(text)
    return int(match[1]) if match else None


class MemoryKills:
    """Follows the counter. `read` gives it, None where there is none; times are the node's monotonic clock."""

    def __init__(self, read: Callable[[], Optional[int]], now: float) -> None:
        self._read = read
        self._count = read() or 0
        self._looked_at = now
        self._kills: List[Tuple[float, float]] = []  # each one's time lies between these two

    def look(self, now: float) -> None:
        """Look at the counter; the more often, the less can a kill of something else be taken for a rank's."""
        count = self._read() or 0
        self._kills += [(self._looked_at, now)] * min(max(0, count - self._count), 1024)
        self._kills = self._kills[-1024:]
        self._count, self._looked_at = count, now

    def explain(self, events: Sequence[Event], now: float, memory: Callable[[int], int]) -> List[Event]:
        """The events, with the reason where the kernel killed a rank. `memory` is what a rank had last, in bytes."""
        killed = [event for event in events if isinstance(event, RankEnded) and _may_be(event)]
        if not killed:
            return list(events)
        self.look(now)
        killed.sort(key=lambda end: memory(end.rank), reverse=True)
        guilty = {end.rank for end in killed if self._take(end.at)}
        return [
            replace(event, reason=EndReason.OOM_KILLED)
            if isinstance(event, RankEnded) and event.rank in guilty
            else event
            for event in events
        ]

    def _take(self, at: float) -> bool:
        for kill in self._kills:
            if kill[0] - SLACK_SECONDS <= at <= kill[1] + SLACK_SECONDS:
                self._kills.remove(kill)
                return True
        return False


def _may_be(end: RankEnded) -> bool:
    return end.signal == signal.SIGKILL and end.reason is None


def reader() -> Callable[[], Optional[int]]:
    """Reads the counter of this process' cgroup."""
    for path in counter_files(_text("/proc/self/cgroup")):
        if read_count(_text(path)) is not None:
            return lambda: read_count(_text(path))
    return lambda: None


def _text(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
