"""Says in the log what the collector refused."""

from __future__ import annotations

import asyncio
import logging

from muster.collector.door.refusals import Refusals

TELL_SECONDS = 60.0
"""One line a minute, however many requests arrive."""

_log = logging.getLogger(__name__)


async def tell_refusals(refusals: Refusals, seconds: float = TELL_SECONDS) -> None:
    """A line every so many seconds in which something was refused. Goes on until cancelled."""
    while True:
        await asyncio.sleep(seconds)
        line = refusals.tell()
        if line is not None:
            _log.warning("the collector refused in the last %.0f s: %s", seconds, line)
