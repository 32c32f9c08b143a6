"""Each iteration of the loop decodes a few reports, of the namespace with the most remaining time first."""

import asyncio
import time
from itertools import pairwise

import pytest

from muster.collector.server.decode_queue import ITERATION_SECONDS, DecodeQueue


def work(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


async def test_the_namespace_with_more_left_goes_first() -> None:
    left = {"evil": 0.0, "victim": 1.0}
    queue, order = DecodeQueue(left.__getitem__), list[str]()

    async def take(namespace: str) -> None:
        async with queue.wait_for_turn(namespace):
            order.append(namespace)
            work(ITERATION_SECONDS)

    await asyncio.gather(*(take(namespace) for namespace in ("evil", "evil", "evil", "victim")))

    assert order == ["evil", "victim", "evil", "evil"]


async def test_the_loop_turns_between_large_reports() -> None:
    queue, turns = DecodeQueue(lambda _: 0.0), list[int]()
    done = 0

    async def take() -> None:
        nonlocal done
        async with queue.wait_for_turn("team"):
            work(ITERATION_SECONDS)
            done += 1

    async def watch() -> None:
        while done < 10:
            turns.append(done)
            await asyncio.sleep(0)

    await asyncio.gather(watch(), *(take() for _ in range(10)))

    assert all(later - earlier <= 1 for earlier, later in pairwise(turns))


async def test_a_cancelled_waiter_delays_no_other() -> None:
    queue = DecodeQueue(lambda _: 0.0)
    entered = list[int]()

    async def take(number: int) -> None:
        async with queue.wait_for_turn("team"):
            work(ITERATION_SECONDS)
            entered.append(number)

    tasks = [asyncio.create_task(take(number)) for number in range(5)]
    await asyncio.sleep(0)
    tasks[1].cancel()
    tasks[3].cancel()
    await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 5.0)

    assert entered == [0, 2, 4]


async def test_an_error_in_a_turn_delays_no_other() -> None:
    queue = DecodeQueue(lambda _: 0.0)

    with pytest.raises(ZeroDivisionError):
        async with queue.wait_for_turn("team"):
            raise ZeroDivisionError
    async with asyncio.timeout(5.0), queue.wait_for_turn("team"):
        pass
