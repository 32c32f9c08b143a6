"""Slots are shared: a key with many requests doesn't delay one with a single request."""

import asyncio
from collections import Counter
from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from muster.clients.kubernetes.fair_slots import FairSlots
from support import virtual_time

TOTAL = 64


class Users:
    """Clients that hold a slot for a second each, again and again."""

    def __init__(self, slots: FairSlots) -> None:
        self.slots = slots
        self.held: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.waits: dict[str, list[float]] = {}

    async def use(self, key: str, seconds: float = 1.0) -> None:
        clock = asyncio.get_running_loop().time
        began = clock()
        async with self.slots.slot(key):
            self.waits.setdefault(key, []).append(clock() - began)
            self.held[key] += 1
            self.most[key] = max(self.most[key], self.held[key])
            await asyncio.sleep(seconds)
            self.held[key] -= 1


def test_one_alone_gets_three_quarters_and_a_newcomer_waits_for_nothing() -> None:
    async def main() -> Users:
        users = Users(FairSlots(TOTAL))
        async with asyncio.TaskGroup() as tasks:
            for _ in range(1000):
                tasks.create_task(users.use("evil"))
            await asyncio.sleep(0.5)
            tasks.create_task(users.use("victim"))
        return users

    users = virtual_time.run(main())
    assert users.most["evil"] == TOTAL * 3 // 4
    assert users.waits["victim"] == [0.0]


def test_many_that_want_much_leave_some_to_the_next() -> None:
    async def main() -> tuple[Users, list[int]]:
        users = Users(FairSlots(TOTAL))
        async with asyncio.TaskGroup() as tasks:
            for namespace in range(10):
                for _ in range(200):
                    tasks.create_task(users.use(f"evil-{namespace}"))
            await asyncio.sleep(7.5)
            served = [len(waits) for waits in users.waits.values()]
            tasks.create_task(users.use("victim"))
        return users, served

    users, served = virtual_time.run(main())
    assert users.waits["victim"] == [0.0]
    # The first key had most of them for the first second, and no more than the others after it.
    assert len(served) == 10
    assert min(served) >= 7 * TOTAL // 10 - 7


def test_those_who_give_up_waiting_take_no_slot_along() -> None:
    async def main() -> Users:
        users = Users(FairSlots(1))
        first = asyncio.create_task(users.use("a"))
        await asyncio.sleep(0.5)
        waiting = [asyncio.create_task(users.use(key)) for key in ("b", "a", "b")]
        await asyncio.sleep(0)
        for task in waiting[:2]:
            task.cancel()
        await asyncio.gather(first, *waiting, return_exceptions=True)
        # Acquired and cancelled in the same iteration of the loop.
        holder = asyncio.create_task(users.use("a", 0.0))
        late = asyncio.create_task(users.use("b"))
        await holder
        late.cancel()
        with suppress(asyncio.CancelledError):
            await late
        # Cancelled, and skipped before it is notified: of one key alone, and among others.
        for others in ((), ("b", "a")):
            holder = asyncio.create_task(users.use("a", 1.0))
            await asyncio.sleep(0.5)
            given_up = asyncio.create_task(users.use("a"))
            waiting = [asyncio.create_task(users.use(key)) for key in others]
            asyncio.get_running_loop().call_later(0.5, given_up.cancel)
            await asyncio.gather(holder, given_up, *waiting, return_exceptions=True)
        async with asyncio.timeout(5):
            await users.use("c")
        return users

    users = virtual_time.run(main())
    assert users.waits["c"] == [0.0]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3), st.integers(0, 4)), max_size=40))
def test_no_slot_is_lost_when_requests_are_cancelled(users: list[tuple[str, int, int]]) -> None:
    """Each starts at once, holds its slot for this many seconds, and is cancelled after that many."""

    async def main() -> None:
        slots = FairSlots(2)
        crowd = Users(slots)

        async def one(key: str, holds: int, patience: int) -> None:
            task = asyncio.create_task(crowd.use(key, holds))
            await asyncio.sleep(patience)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

        async with asyncio.timeout(1000):
            await asyncio.gather(*(one(*user) for user in users))
            # Both are free again: two clients acquire them at once.
            async with slots.slot("x"), slots.slot("y"):
                pass

    virtual_time.run(main())


def test_requests_of_a_key_go_job_by_job() -> None:
    async def main() -> list[int]:
        slots, served = FairSlots(4, lambda _: 1), list[int]()

        async def create_pods(job: int) -> None:
            for _ in range(3):
                async with slots.slot("team", job):
                    served.append(job)
                    await asyncio.sleep(1.0)

        async with asyncio.TaskGroup() as tasks:
            for job in (3, 1, 2):
                tasks.create_task(create_pods(job))
        return served

    # A free slot goes to a waiting request: none of job 1 waits while its last one ends.
    assert virtual_time.run(main()) == [3, 1, 2, 1, 2, 1, 2, 3, 3]


def test_creations_get_slots_while_status_writes_come_faster_than_slots_become_free() -> None:
    async def main() -> list[float]:
        slots, users = FairSlots(4, lambda _: 1), list[float]()
        clock = asyncio.get_running_loop().time

        async def write_statuses() -> None:
            while True:
                async with slots.slot("team"):
                    await asyncio.sleep(1.0)

        async def create_pod(job: int) -> None:
            async with slots.slot("team", job):
                users.append(clock())
                await asyncio.sleep(1.0)

        writers = [asyncio.create_task(write_statuses()) for _ in range(3)]
        await asyncio.sleep(0.5)
        async with asyncio.timeout(20):
            await asyncio.gather(*(create_pod(job) for job in (1, 2, 3)))
        for writer in writers:
            writer.cancel()
        return users

    # Every other slot: at the ends of the second, the fourth and the sixth write.
    assert virtual_time.run(main()) == [2.0, 4.0, 6.0]
