"""Restart a task of the operator when a bug makes it fail."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

from muster.clients.kubernetes.backoff import compute_backoff_seconds

STABLE_SECONDS = 60.0
"""If the task runs this long, its failures are counted from zero again."""

_log = logging.getLogger(__name__)


async def supervise(
    name: str,
    work: Callable[[], Awaitable[None]],
    jitter: Callable[[], float],
    monotonic: Callable[[], float] = time.monotonic,
) -> None:
    """Run `work` until it returns, and restart it with backoff when it fails. `jitter` is random, from 0 to 1."""
    failures = 0
    while True:
        started_at = monotonic()
        try:
            return await work()
        except Exception:  # noqa: BLE001 - any bug; the operator must keep running
            failures = 0 if monotonic() - started_at > STABLE_SECONDS else failures
            seconds = compute_backoff_seconds(failures, None, jitter())
            _log.exception("%s failed because of a bug in muster; restart in %.1f s", name, seconds)
        failures += 1
        await asyncio.sleep(seconds)
