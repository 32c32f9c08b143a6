"""Detects which ranks the kernel killed because the node reached its memory limit.

The kernel only increments a counter of the cgroup. The detector assigns each increment to a rank that SIGKILL ended at
that time. If there are several such ranks, it chooses those with the most memory.
"""

from __future__ import annotations

import re
import signal
from dataclasses import replace
from typing import Callable, List, Optional, Sequence, Tuple

from muster_worker.agent.state import Event, RankEnded
from muster_worker.contract.schema import EndReason

MAX_DELAY_SECONDS = 1.0
"""An end may seem this much earlier than the counter's increment, on a loaded machine."""

MAX_DYING_SECONDS = 5.0
"""A killed process ends at most this long after the increment: the kernel frees its memory first."""

_COUNTER = re.compile(r"^oom_kill (\d+)$", re.MULTILINE)
_ROOT = "/sys/fs/cgroup"


def list_counter_files(cgroup_text: str) -> Tuple[str, ...]:
    """Return paths of the counter's file, likely ones first. `cgroup_text` is the text in /proc/self/cgroup."""
    result = []
    for line in cgroup_text.splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            result.append(f"{_ROOT}{path.rstrip('/')}/memory.events")
        elif "memory" in controllers.split(","):
            result.append(f"{_ROOT}/memory{path.rstrip('/')}/memory.oom_control")
    # In a container these paths may be those of the host, while the container's own cgroup is mounted at the root.
    return (*result, f"{_ROOT}/memory.events", f"{_ROOT}/memory/memory.oom_control")


def read_count(text: str) -> Optional[int]:
    """Return the number of killed processes, from cgroup v2's memory.events or v1's memory.oom_control."""
    match = _COUNTER.search(text)
    return int(match[1]) if match else None


class OomKillDetector:
    """Reads the counter repeatedly. `read` returns None without a counter. Times are on the node's monotonic clock."""

    def __init__(self, read: Callable[[], Optional[int]], now: float) -> None:
        self._read_count = read
        self._count = read() or 0
        self._updated_at = now
        self._kills: List[Tuple[float, float]] = []  # each kill happened between these two times

    def update(self, now: float) -> None:
        """Read the counter. Frequent calls narrow down the time of each kill."""
        count = self._read_count() or 0
        self._kills += [(self._updated_at, now)] * min(max(0, count - self._count), 1024)
        self._kills = self._kills[-1024:]
        self._count, self._updated_at = count, now

    def add_oom_reasons(self, events: Sequence[Event], now: float, memory: Callable[[int], int]) -> List[Event]:
        """Add the reason to the ends of ranks that the kernel killed. `memory` returns a rank's last known bytes."""
        killed = [event for event in events if isinstance(event, RankEnded) and _is_unexplained_kill(event)]
        if not killed:
            return list(events)
        self.update(now)
        killed.sort(key=lambda end: memory(end.rank), reverse=True)
        killed_ranks = {end.rank for end in killed if self._remove_matching_kill(end.at)}
        return [
            replace(event, reason=EndReason.OOM_KILLED)
            if isinstance(event, RankEnded) and event.rank in killed_ranks
            else event
            for event in events
        ]

    def _remove_matching_kill(self, at: float) -> bool:
        for kill in self._kills:
            if kill[0] - MAX_DELAY_SECONDS <= at <= kill[1] + MAX_DYING_SECONDS:
                self._kills.remove(kill)
                return True
        return False


def _is_unexplained_kill(end: RankEnded) -> bool:
    return end.signal == signal.SIGKILL and end.reason is None


def find_counter() -> Callable[[], Optional[int]]:
    """Return a function that reads the counter of this process' cgroup."""
    for path in list_counter_files(_read_text("/proc/self/cgroup")):
        if read_count(_read_text(path)) is not None:
            return lambda: read_count(_read_text(path))
    return lambda: None


def _read_text(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
