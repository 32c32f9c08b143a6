"""Waiting for what only asking tells."""

import time
from collections.abc import Callable

from cluster.waiting import PAUSE_SECONDS


def until(what: Callable[[], object], seconds: float) -> float:
    """Wait until `what()` holds; how many seconds that took. Raises AssertionError after so many."""
    began = time.monotonic()
    while not what():
        assert time.monotonic() - began < seconds, f"not within {seconds:.0f} s"
        time.sleep(PAUSE_SECONDS)
    return time.monotonic() - began
