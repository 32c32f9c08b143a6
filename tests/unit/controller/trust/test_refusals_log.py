"""Refusals get into the log, and no more than a line at a time."""

import asyncio
import logging

import pytest

from muster.collector.door.refusal import Reason
from muster.collector.door.refusals import Refusals
from muster.controller.trust.refusals_log import tell_refusals


async def test_a_line_says_what_was_refused_and_then_nothing_more(caplog: pytest.LogCaptureFixture) -> None:
    refusals = Refusals()
    for _ in range(5):
        refusals.count(Reason.TOO_BUSY, "vit-0-0", "team")
    telling = asyncio.create_task(tell_refusals(refusals, 0.01))
    with caplog.at_level(logging.WARNING):
        async with asyncio.timeout(10.0):
            while not caplog.messages:  # noqa: ASYNC110 - there is no event to await
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
    telling.cancel()

    assert caplog.messages == ["the collector refused in the last 0 s: TooBusy 5; most from team/vit-0-0 5"]
