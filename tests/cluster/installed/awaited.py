"""Waits for conditions that no event reports, by polling."""

import time
from collections.abc import Callable

from cluster.waiting import PAUSE_SECONDS


def until(what: Callable[[], object], seconds: float) -> float:
    """Wait until `what()` is true; return the seconds. Raises AssertionError after the limit."""
    began = time.monotonic()
    while not what():
        assert time.monotonic() - began < seconds, f"not within {seconds:.0f} s"
        time.sleep(PAUSE_SECONDS)
    return time.monotonic() - began
