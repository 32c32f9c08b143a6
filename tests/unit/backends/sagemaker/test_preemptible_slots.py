"""A slow host, or an owner with many jobs, doesn't delay others."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as some

from muster.backends.sagemaker.preemptible_slots import PreemptibleSlots, SlotPreempted

PROMISED = 1000.0


@dataclass
class Crowd:
    """Each turn lasts until `end` is called; `begun` are the started ones, in their order."""

    turns: PreemptibleSlots
    begun: list[str] = field(default_factory=list)
    _ends: dict[str, asyncio.Event] = field(default_factory=dict)
    _tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)

    async def come(self, name: str) -> None:
        """`name` is owner@host, optionally with #number."""
        self._ends[name] = asyncio.Event()
        self._tasks[name] = asyncio.create_task(self._one(name))
        await _settle()

    async def end(self, name: str) -> None:
        self._ends[name].set()
        await self._tasks[name]
        await _settle()

    async def cancel(self, name: str) -> None:
        self._tasks[name].cancel()
        with pytest.raises(asyncio.CancelledError):
            await self._tasks[name]
        await _settle()

    async def _one(self, name: str) -> None:
        owner, _, host = name.partition("#")[0].partition("@")
        async with self.turns.turn(owner, host):
            self.begun.append(name)
            await self._ends[name].wait()


async def _settle() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("came", "began"),
    [
        pytest.param(("a@x", "b@y", "c@z"), ("a@x", "b@y"), id="two at once"),
        pytest.param(("a@x", "b@x", "c@y"), ("a@x", "c@y"), id="one with a host"),
        pytest.param(("a@x", "a@y", "c@z"), ("a@x", "c@z"), id="one of an owner"),
        pytest.param(("a@x", "a@x#2"), ("a@x",), id="one of an owner, though no other waits"),
    ],
)
async def test_who_begins(came: Iterable[str], began: tuple[str, ...]) -> None:
    crowd = Crowd(PreemptibleSlots(2, PROMISED))
    for name in came:
        await crowd.come(name)
    assert tuple(crowd.begun) == began
    for name in came:
        await crowd.end(name)
    assert sorted(crowd.begun) == sorted(came)


async def test_owners_take_turns_however_much_one_has() -> None:
    crowd = Crowd(PreemptibleSlots(1, PROMISED))
    for name in ("a@x", "a@x#2", "a@x#3", "b@y", "b@y#2", "c@z"):
        await crowd.come(name)
    for number in range(6):
        await crowd.end(crowd.begun[number])
    assert crowd.begun == ["a@x", "b@y", "c@z", "a@x#2", "b@y#2", "a@x#3"]


async def test_a_cancelled_waiter_delays_no_other_host() -> None:
    crowd = Crowd(PreemptibleSlots(1, PROMISED))
    for name in ("a@x", "b@y", "c@z"):
        await crowd.come(name)
    await crowd.cancel("b@y")
    await crowd.cancel("a@x")
    assert crowd.begun == ["a@x", "c@z"]
    await crowd.end("c@z")


async def test_who_is_cancelled_as_the_turn_comes_hands_it_on() -> None:
    turns = PreemptibleSlots(1, PROMISED)
    entered = asyncio.Event()

    async def wait() -> None:
        async with turns.turn("b", "y"):
            entered.set()

    async with turns.turn("a", "x"):
        task = asyncio.create_task(wait())
        await _settle()
    # it has the turn by now, and has not been notified
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not entered.is_set()
    async with asyncio.timeout(5), turns.turn("c", "z"):
        pass


@given(some.lists(some.tuples(some.sampled_from("abc"), some.sampled_from("xyz"), some.booleans()), max_size=25))
def test_all_have_their_turn_and_never_two_of_one_kind(came: list[tuple[str, str, bool]]) -> None:
    async def go() -> None:
        turns, now, done = PreemptibleSlots(2, PROMISED), list[tuple[str, str]](), 0

        async def one(owner: str, host: str) -> None:
            nonlocal done
            async with turns.turn(owner, host):
                now.append((owner, host))
                assert len(now) <= 2
                assert len({owner for owner, _ in now}) == len({host for _, host in now}) == len(now)
                await asyncio.sleep(0)
                now.remove((owner, host))
            done += 1

        tasks = []
        for owner, host, waits in came:
            tasks.append(asyncio.create_task(one(owner, host)))
            if waits:
                await asyncio.sleep(0)
        await asyncio.gather(*tasks)
        assert done == len(came)

    asyncio.run(go())


async def test_who_has_had_the_promised_time_makes_room_for_another_owner() -> None:
    turns, ends = PreemptibleSlots(2, 0.05), list[str]()

    async def one(owner: str, seconds: float) -> None:
        try:
            async with turns.turn(owner):
                await asyncio.sleep(seconds)
                ends.append(f"{owner} done")
        except SlotPreempted:
            ends.append(f"{owner} cut")

    async with asyncio.timeout(20):
        slow = [asyncio.create_task(one(owner, 1000.0)) for owner in ("a", "b")]
        await _settle()
        await one("c", 0.0)
        # of the two slow ones, the one that started first; the other one has its slot as long as no other waits
        await asyncio.gather(slow[0])
        assert ends == ["a cut", "c done"]
        await one("d", 0.0)
        assert ends[2:] == ["d done"]
        slow[1].cancel()


async def test_an_owners_own_jobs_wait_for_as_long_as_it_takes() -> None:
    turns = PreemptibleSlots(1, 0.01)
    begun = asyncio.Event()

    async def second() -> None:
        async with turns.turn("a"):
            begun.set()

    async with turns.turn("a"):
        task = asyncio.create_task(second())
        await asyncio.sleep(0.1)
        assert not begun.is_set()
    await task


async def test_one_host_has_half_of_the_places() -> None:
    crowd = Crowd(PreemptibleSlots(4, PROMISED))
    for name in ("a@x", "b@x", "c@x", "d@y", "e@z"):
        await crowd.come(name)
    assert crowd.begun == ["a@x", "b@x", "d@y", "e@z"]
    for name in ("a@x", "b@x", "c@x", "d@y", "e@z"):
        await crowd.end(name)


async def test_a_time_limit_of_the_works_own_is_no_cut() -> None:
    turns = PreemptibleSlots(1, PROMISED)
    with pytest.raises(TimeoutError):
        async with turns.turn("a"), asyncio.timeout(0):
            await asyncio.sleep(1)
