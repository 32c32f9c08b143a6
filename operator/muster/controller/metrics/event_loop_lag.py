"""Measure how much too late the event loop runs a timer."""

import asyncio

from muster.controller.metrics.durations import Durations

INTERVAL_SECONDS = 0.25


async def measure_lag(lag: Durations) -> None:
    """Add a measurement to `lag` in each interval, until cancelled."""
    now = asyncio.get_running_loop().time
    while True:
        due = now() + INTERVAL_SECONDS
        await asyncio.sleep(INTERVAL_SECONDS)
        lag.observe(max(0.0, now() - due))
