"""How often what failed is tried again. Pure, but for the pause that it is given."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from muster.render.storage.errors import StorageError

BACKOFF_SECONDS = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 30.0, 30.0, 30.0, 30.0)
"""Seconds between attempts without progress: a network may be gone for three minutes."""

_Result = TypeVar("_Result")

Sleep = Callable[[float], object]
"""Waits so many seconds: `time.sleep`, or an event's wait."""


def retry(attempt: Callable[[], _Result], sleep: Sleep) -> _Result:
    """What `attempt` returns in the end. Raises its `StorageError` when that doesn't pass."""
    for seconds in BACKOFF_SECONDS:
        try:
            return attempt()
        except StorageError as found:
            if not found.may_pass:
                raise
        sleep(seconds)
    return attempt()
