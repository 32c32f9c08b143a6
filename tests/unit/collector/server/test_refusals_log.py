"""Refusals are logged, with one line at a time."""

import asyncio
import logging

import pytest

from muster.collector.server.refusal import RefusalReason
from muster.collector.server.refusal_counter import RefusalCounter, log_refusals


async def test_a_line_says_what_was_refused_and_then_nothing_more(caplog: pytest.LogCaptureFixture) -> None:
    refusals = RefusalCounter()
    for _ in range(5):
        refusals.count(RefusalReason.TOO_BUSY, "vit-0-0", "team")
    telling = asyncio.create_task(log_refusals(refusals, 0.01))
    with caplog.at_level(logging.WARNING):
        async with asyncio.timeout(10.0):
            while not caplog.messages:  # noqa: ASYNC110 - there is no event to await
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
    telling.cancel()

    assert caplog.messages == ["the collector refused requests in the last 0 s: TooBusy 5; most from team/vit-0-0 5"]
