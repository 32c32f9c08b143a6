"""Measure the lag of the event loop: the delay with which it runs a timer."""

import asyncio

from muster.controller.metrics.durations import DurationHistogram

INTERVAL_SECONDS = 0.25


async def measure_lag(lag: DurationHistogram) -> None:
    """Add a measurement to `lag` in each interval, until cancelled."""
    now = asyncio.get_running_loop().time
    while True:
        due_at = now() + INTERVAL_SECONDS
        await asyncio.sleep(INTERVAL_SECONDS)
        lag.observe(max(0.0, now() - due_at))
