"""A clock that ignores changes of the system clock."""

from __future__ import annotations

from collections.abc import Callable


def create_steady_clock(now: float, monotonic: Callable[[], float]) -> Callable[[], float]:
    """Return a clock that starts at `now` (Unix seconds) and advances with `monotonic`.

    A correction of the system clock could exceed deadlines, make all nodes look silent, or reorder failures.
    """
    started_at = monotonic()
    return lambda: now + (monotonic() - started_at)
