import asyncio

import pytest

from muster.controller.jobs.cpu_time import MeteredCoroutine
from muster.controller.jobs.processor_queue import ProcessorQueue
from muster.engine.thread import run_in_thread


class Processor:
    """A processor clock that the work itself advances."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def test_only_the_work_itself_is_counted() -> None:
    clock = Processor()
    met = asyncio.Event()

    async def work() -> str:
        clock.now += 1.0
        await met.wait()
        clock.now += 2.0
        return "done"

    async def other() -> None:
        clock.now += 40.0
        met.set()

    meter = MeteredCoroutine(work(), ProcessorQueue(clock), "team")
    others = asyncio.create_task(other())
    assert await meter == "done"
    await others
    assert meter.seconds == 3.0


async def test_a_failure_is_the_callers_and_is_counted() -> None:
    clock = Processor()

    async def work() -> None:
        clock.now += 1.0
        await asyncio.sleep(0)
        clock.now += 1.0
        raise LookupError

    meter = MeteredCoroutine(work(), ProcessorQueue(clock), "team")
    with pytest.raises(LookupError):
        await meter
    assert meter.seconds == 2.0


async def test_cancellation_reaches_the_work() -> None:
    clock, begun, tidied = Processor(), asyncio.Event(), asyncio.Event()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            tidied.set()

    async def run() -> None:
        await MeteredCoroutine(work(), ProcessorQueue(clock), "team")

    task = asyncio.create_task(run())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert tidied.is_set()


async def test_what_is_computed_apart_is_counted() -> None:
    async def work() -> None:
        await run_in_thread("team", lambda: sum(range(1_000_000)))

    meter = MeteredCoroutine(work(), ProcessorQueue(Processor()), "team")
    await meter
    assert meter.seconds > 0.0
