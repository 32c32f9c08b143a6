"""Retry failed requests. Pure, except for the `sleep` argument."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from muster.render.storage.errors import StorageError

BACKOFF_SECONDS = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 30.0, 30.0, 30.0, 30.0)
"""Seconds between attempts: a network failure may last three minutes."""

_Result = TypeVar("_Result")

Sleep = Callable[[float], object]
"""Sleeps for the given seconds: `time.sleep`, or an event's wait."""


def retry(attempt: Callable[[], _Result], sleep: Sleep) -> _Result:
    """Return the result of the first successful attempt. Raises `StorageError` if it is permanent or persists."""
    for seconds in BACKOFF_SECONDS:
        try:
            return attempt()
        except StorageError as problem:
            if not problem.may_pass:
                raise
        sleep(seconds)
    return attempt()
