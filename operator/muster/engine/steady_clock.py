"""The time of a run: it does not follow changes of the system clock."""

from __future__ import annotations

from collections.abc import Callable


def steady_clock(now: float, monotonic: Callable[[], float]) -> Callable[[], float]:
    """A clock that is `now` (Unix seconds) at this moment and goes on as `monotonic` does.

    The machine's own clock may be corrected meanwhile: by that a deadline would seem over, all nodes silent, and a rank
    that failed later than another the first one.
    """
    began = monotonic()
    return lambda: now + (monotonic() - began)
