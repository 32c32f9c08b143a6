"""A namespace has few requests in flight while the API server is slow, and many otherwise."""

import asyncio
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from muster.clients.kubernetes.adaptive_limit import INITIAL_LIMIT, LATENCY_WINDOW_SECONDS, MIN_LIMIT, AdaptiveLimit
from muster.clients.kubernetes.fair_slots import LATE_SECONDS, FairSlots
from muster.clients.kubernetes.session import MAX_IN_FLIGHT as MOST
from support import virtual_time

POD_SECONDS = 0.01
"""The API server's time for one pod."""


class Server:
    """Processes this many requests at once; the others wait."""

    def __init__(self, cores: int) -> None:
        self.limit = AdaptiveLimit(MOST)
        self.slots = FairSlots(MOST, self.limit.get_limit)
        self._cores = asyncio.Semaphore(cores)
        self.in_flight: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.done = 0

    async def ask(self, namespace: str, seconds: float = POD_SECONDS) -> float:
        """Return the time until the answer."""
        clock = asyncio.get_running_loop().time
        async with self.slots.slot(namespace):
            began = clock()
            self.in_flight[namespace] += 1
            self.most[namespace] = max(self.most[namespace], self.in_flight[namespace])
            async with self._cores:
                await asyncio.sleep(seconds)
            self.in_flight[namespace] -= 1
            self.done += 1
            self.limit.record_latency(namespace, "POST pods", clock() - began, clock())
            return clock() - began


def test_a_flood_of_one_namespace_leaves_the_server_to_the_others_and_is_as_fast() -> None:
    async def main() -> tuple[Server, float]:
        server = Server(cores=2)
        flood = [asyncio.create_task(server.ask("evil")) for _ in range(2_000)]
        await asyncio.sleep(2.0)
        began = server.done
        took = max([await server.ask("victim") for _ in range(100)])
        await asyncio.gather(*flood)
        assert began >= 0.9 * 2.0 * 2 / POD_SECONDS  # it was never idle
        return server, took

    server, took = virtual_time.run(main())
    assert server.most["evil"] <= 16
    assert took <= 10 * POD_SECONDS


def test_a_server_that_is_not_busy_is_given_all() -> None:
    async def main() -> Server:
        server = Server(cores=64)
        await asyncio.gather(*(server.ask("large") for _ in range(2_000)))
        return server

    assert virtual_time.run(main()).most["large"] == 48


def test_what_takes_long_by_itself_is_not_taken_for_a_queue() -> None:
    """A webhook that checks each pod."""
    limit = AdaptiveLimit(MOST)
    for number in range(200):
        limit.record_latency("a", "PATCH pods", 0.001, number)
        limit.record_latency("a", "POST pods", 0.5, number)
    assert limit.get_limit("a") == MOST


def test_a_server_that_has_become_slower_for_good_is_given_all_again() -> None:
    limit = AdaptiveLimit(MOST)
    for at in range(10):
        limit.record_latency("a", "POST pods", 0.01, at)
    for at in range(100):
        limit.record_latency("a", "POST pods", 0.1, at)
    assert limit.get_limit("a") == MIN_LIMIT
    for at in range(100, 100 + 3 * int(LATENCY_WINDOW_SECONDS)):
        limit.record_latency("a", "POST pods", 0.1, at)
    assert limit.get_limit("a") == MOST


def test_no_answer_counts_as_a_late_one() -> None:
    limit = AdaptiveLimit(MOST)
    for _ in range(50):
        limit.record_failure("a")
    assert limit.get_limit("a") == MIN_LIMIT
    assert limit.get_limit("b") == INITIAL_LIMIT
    limit.forget("a")
    assert limit.get_limit("a") == INITIAL_LIMIT


def test_answers_that_never_come_do_not_keep_the_namespaces_other_requests_waiting() -> None:
    async def main() -> float:
        server = Server(cores=64)
        hanging = [asyncio.create_task(server.ask("a", 20.0)) for _ in range(2 * int(INITIAL_LIMIT))]
        await asyncio.sleep(0.5)
        began = asyncio.get_running_loop().time()
        await server.ask("a")
        took = asyncio.get_running_loop().time() - began
        await asyncio.gather(*hanging)
        return took

    assert virtual_time.run(main()) <= 2.1 * LATE_SECONDS


@given(st.lists(st.tuples(st.floats(0, 1e6), st.floats(0, 1e9))))
def test_there_is_always_something(answers: list[tuple[float, float]]) -> None:
    limit, now = AdaptiveLimit(MOST), 0.0
    for seconds, passed in answers:
        now += passed
        limit.record_latency("a", "POST pods", seconds, now)
        assert MIN_LIMIT <= limit.get_limit("a") <= MOST
