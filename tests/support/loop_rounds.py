"""Measures how long an event loop computes in one iteration."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass


@dataclass
class Rounds:
    """The longest iteration and the total of all, in seconds of the thread's processor time."""

    longest: float = 0.0
    total: float = 0.0


@asynccontextmanager
async def measured_rounds() -> AsyncIterator[Rounds]:
    """Measure all iterations of the running loop inside the block, without the time of Python's garbage collector."""
    rounds = Rounds()

    async def watch() -> None:
        before = time.thread_time()
        while True:
            await asyncio.sleep(0)
            now = time.thread_time()
            rounds.longest, rounds.total = max(rounds.longest, now - before), rounds.total + now - before
            before = now

    watching = asyncio.create_task(watch())
    await asyncio.sleep(0)
    gc.disable()
    try:
        yield rounds
        await asyncio.sleep(0)
    finally:
        gc.enable()
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
