import asyncio
from collections.abc import Callable
from itertools import pairwise

import pytest

from muster.clients.aws.quotas import Quota
from muster.clients.aws.rate_limiter import RateLimiter
from muster.objects.aws.errors import NotFound, Throttled
from support import virtual_time

ANSWER_SECONDS = 0.3


def sent(quota: Quota, requests: int, answer: Callable[[int], None] = lambda _number: None) -> list[float]:
    """Return the times at which this many simultaneous requests are sent. Each is answered later, with `answer`'s
    error.
    """
    times: list[float] = []

    async def ask(gate: RateLimiter, number: int) -> None:
        async with gate.slot():
            times.append(asyncio.get_running_loop().time())
            await asyncio.sleep(ANSWER_SECONDS)
            answer(number)

    async def main() -> None:
        gate = RateLimiter(quota)
        await asyncio.gather(*(ask(gate, number) for number in range(requests)), return_exceptions=True)

    virtual_time.run(main())
    return times


def pauses(times: list[float]) -> list[float]:
    return [round(after - before, 6) for before, after in pairwise(times)]


def test_one_at_a_time_waits_for_the_answer_and_a_whole_interval_more() -> None:
    assert pauses(sent(Quota(2.0, 1), 4)) == [0.8, 0.8, 0.8]


def test_several_at_once_are_sent_at_their_pace() -> None:
    assert pauses(sent(Quota(5.0, 2), 5)) == [0.2, 0.2, 0.2, 0.2]


def test_no_more_than_allowed_wait_for_an_answer() -> None:
    assert pauses(sent(Quota(100.0, 2), 4)) == [0.01, 0.29, 0.01]


def test_a_refusal_makes_the_next_ones_wait_and_answers_bring_the_pace_back() -> None:
    def answer(number: int) -> None:
        if number == 1:
            raise Throttled("slowly")

    result = pauses(sent(Quota(2.0, 1), 6, answer))
    assert result[:3] == [0.8, 1.3, 1.25]
    assert result == [result[0], *sorted(result[1:], reverse=True)]


def test_other_errors_do_not() -> None:
    def answer(_number: int) -> None:
        raise NotFound("no such job")

    assert pauses(sent(Quota(2.0, 1), 3, answer)) == [0.8, 0.8]


@pytest.mark.parametrize("at_once", [1, 3])
def test_a_cancelled_request_delays_no_other(at_once: int) -> None:
    async def take(gate: RateLimiter, done: list[float]) -> None:
        async with gate.slot():
            done.append(asyncio.get_running_loop().time())

    async def main() -> list[float]:
        gate, done = RateLimiter(Quota(1.0, at_once)), list[float]()
        tasks = [asyncio.create_task(take(gate, done)) for _ in range(4)]
        await asyncio.sleep(0.5)
        tasks[1].cancel()
        tasks[2].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return done

    assert virtual_time.run(main()) == [0.0, 1.0]


def test_a_cancelled_request_counts_as_sent() -> None:
    async def hold(gate: RateLimiter) -> None:
        async with gate.slot():
            await asyncio.sleep(60)

    async def main() -> float:
        gate = RateLimiter(Quota(1.0, 1))
        task: asyncio.Task[None] = asyncio.create_task(hold(gate))
        await asyncio.sleep(5)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        async with gate.slot():
            return asyncio.get_running_loop().time()

    assert virtual_time.run(main()) == 6.0
