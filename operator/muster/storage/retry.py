"""Retry failed requests. Pure, except for `sleep`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from muster.render.storage.errors import StorageError

BACKOFF_SECONDS = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 30.0, 30.0, 30.0, 30.0)
"""Seconds between attempts, for network failures of up to three minutes."""

_Result = TypeVar("_Result")

Sleep = Callable[[float], object]
"""Sleeps for a number of seconds, such as `time.sleep` or an event's `wait`."""


def retry(attempt: Callable[[], _Result], sleep: Sleep) -> _Result:
    """Return the result of the first successful attempt. Raises a `StorageError` that is permanent or persists."""
    for seconds in BACKOFF_SECONDS:
        try:
            return attempt()
        except StorageError as problem:
            if not problem.is_retryable:
                raise
        sleep(seconds)
    return attempt()
