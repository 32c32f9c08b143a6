"""Keeps a task going that serves all jobs: whatever one of them makes of it must not end it for the others."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

from muster.clients.kubernetes.backoff import backoff_seconds

GOOD_SECONDS = 60.0
"""When a task went for so long, its failure is not one of a row."""

_log = logging.getLogger(__name__)


async def supervised(
    name: str,
    work: Callable[[], Awaitable[None]],
    chance: Callable[[], float],
    monotonic: Callable[[], float] = time.monotonic,
) -> None:
    """Run `work` until it returns, and again at growing pauses when it fails. `chance` gives numbers from 0 to 1."""
    failures = 0
    while True:
        began = monotonic()
        try:
            return await work()
        except Exception:  # noqa: BLE001 - whatever it is, the others' jobs go on
            failures = 0 if monotonic() - began > GOOD_SECONDS else failures
            seconds = backoff_seconds(failures, None, chance())
            _log.exception("%s failed by a mistake in muster; begun again in %.1f s", name, seconds)
        failures += 1
        await asyncio.sleep(seconds)
