"""A task that serves all jobs continues after an error of one of them."""

import asyncio
import logging
from itertools import pairwise

import pytest

from muster.controller.supervision import STABLE_SECONDS, supervise
from support import virtual_time


def test_what_fails_is_begun_again_at_growing_pauses(caplog: pytest.LogCaptureFixture) -> None:
    begun: list[float] = []

    async def work() -> None:
        loop = asyncio.get_running_loop()
        begun.append(loop.time())
        if len(begun) == 6:
            await asyncio.sleep(STABLE_SECONDS + 1.0)
        if len(begun) < 8:
            raise RecursionError("maximum recursion depth exceeded")

    async def main() -> None:
        await supervise("the work", work, lambda: 1.0, asyncio.get_running_loop().time)

    virtual_time.run(main())
    gaps = [round(after - at, 1) for at, after in pairwise(begun)]
    assert gaps == [0.2, 0.4, 0.8, 1.6, 3.2, STABLE_SECONDS + 1.0 + 0.2, 0.4]
    is_told = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert len(is_told) == 7
    assert "the work failed because of a bug in muster" in is_told[0].getMessage()


def test_what_is_cancelled_ends() -> None:
    async def rest() -> None:
        await asyncio.sleep(3600.0)

    async def main() -> asyncio.Task[None]:
        task = asyncio.create_task(supervise("the work", rest, lambda: 1.0))
        await asyncio.sleep(1.0)
        task.cancel()
        await asyncio.wait([task])
        return task

    assert virtual_time.run(main()).cancelled()
