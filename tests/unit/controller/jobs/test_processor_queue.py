"""Namespaces share the event loop's time: one that uses all of it delays another one's turns by a limited time."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import TypeVar, cast

import pytest

from muster.controller.jobs.cpu_time import MeteredCoroutine
from muster.controller.jobs.mean_waits import MeanWaits
from muster.controller.jobs.processor_queue import MAX_ACTION_WAIT_SECONDS, Place, ProcessorQueue, Stage
from muster.controller.jobs.reconcile_delay import MAX_LOAD_DELAY_SECONDS, MIN_DELAY_SECONDS, make_delay
from support import virtual_time

_T = TypeVar("_T")

STEP_SECONDS = 0.003
STEPS = 6
VICTIM = "victim"


class Loop:
    """An event loop in which only computations take time."""

    def __init__(self) -> None:
        self.loop = cast("virtual_time.VirtualTimeLoop", asyncio.get_running_loop())
        self.queue = ProcessorQueue(self.loop.time)
        self.used: Counter[str] = Counter()

    async def turn(self, namespace: str, step_seconds: float) -> None:
        """Compute, and await a response, a few times."""
        for _ in range(STEPS):
            self.loop.advance(step_seconds)
            self.used[namespace] += 1
            await asyncio.sleep(0)

    async def timed_turn(self, namespace: str, step_seconds: float = STEP_SECONDS) -> float:
        """Return the time of a turn among all others."""
        began = self.loop.time()
        await MeteredCoroutine(self.turn(namespace, step_seconds), self.queue, namespace)
        return self.loop.time() - began

    async def busy_job(self, namespace: str, step_seconds: float = STEP_SECONDS) -> None:
        """One turn after the other, endlessly."""
        while True:
            await self.timed_turn(namespace, step_seconds)


async def beside(jobs: dict[str, int], step_seconds: float, what: Callable[[Loop], asyncio.Future[_T]]) -> _T:
    """Return the result of `what` while each namespace has this many busy jobs."""
    loop = Loop()
    busy = [
        asyncio.create_task(loop.busy_job(namespace, step_seconds))
        for namespace, number in jobs.items()
        for _ in range(number)
    ]
    await asyncio.sleep(2.0)
    try:
        return await what(loop)
    finally:
        for task in busy:
            task.cancel()
        await asyncio.wait(busy)


@pytest.mark.parametrize("step_seconds", [STEP_SECONDS, 0.25])
def test_a_thousand_busy_jobs_of_one_namespace_delay_a_step_of_another_by_one_step(step_seconds: float) -> None:
    took = virtual_time.run(
        beside({"evil": 1000}, step_seconds, lambda loop: asyncio.ensure_future(loop.timed_turn(VICTIM)))
    )
    # One of its steps may be running, and one more may be before the new one.
    assert took <= STEPS * (STEP_SECONDS + 2 * step_seconds)


@pytest.mark.parametrize("step_seconds", [STEP_SECONDS, 0.05])
def test_only_the_namespace_that_queues_waits_longer_between_its_reconciles(step_seconds: float) -> None:
    async def pause(loop: Loop) -> tuple[float, float]:
        for _ in range(10):
            await loop.timed_turn(VICTIM)
        delays = [
            make_delay(0.0, STEP_SECONDS, loop.queue.mean_waits.get(namespace), None) for namespace in (VICTIM, "evil")
        ]
        return delays[0].urgent_seconds, delays[1].urgent_seconds

    pauses = virtual_time.run(beside({"evil": 30}, step_seconds, lambda loop: asyncio.ensure_future(pause(loop))))
    assert pauses == (MIN_DELAY_SECONDS, MAX_LOAD_DELAY_SECONDS)


def test_the_waits_of_a_namespace_without_steps_are_forgotten() -> None:
    waits = MeanWaits()
    for second in range(100):
        waits.add("team", second - 2.0, float(second))
        waits.add(f"deleted-{second}", float(second), float(second))
    assert waits.get("team") == pytest.approx(1.0, rel=0.01)
    waits.add("other", 300.0, 300.0)
    assert len(waits) == 1
    assert waits.get("team") == 0.0


def test_ten_such_namespaces_delay_it_by_ten() -> None:
    jobs = {f"evil-{number}": 100 for number in range(10)}
    took = virtual_time.run(beside(jobs, STEP_SECONDS, lambda loop: asyncio.ensure_future(loop.timed_turn(VICTIM))))
    assert took <= STEPS * (len(jobs) + 2) * STEP_SECONDS


def test_a_busy_namespace_of_few_jobs_gets_as_much_as_one_of_many() -> None:
    async def main() -> Counter[str]:
        loop = Loop()
        busy = [asyncio.create_task(loop.busy_job("evil")) for _ in range(500)]
        busy += [asyncio.create_task(loop.busy_job(VICTIM)) for _ in range(2)]
        await asyncio.sleep(30.0)
        for task in busy:
            task.cancel()
        await asyncio.wait(busy)
        return loop.used

    used = virtual_time.run(main())
    assert used[VICTIM] == pytest.approx(used["evil"], rel=0.01)


def test_unused_time_is_available_to_all() -> None:
    async def main() -> tuple[float, Counter[str]]:
        loop = Loop()
        async with asyncio.TaskGroup() as tasks:
            for _ in range(100):
                tasks.create_task(loop.timed_turn("alone"))
        return loop.loop.time(), loop.used

    took, used = virtual_time.run(main())
    assert took == pytest.approx(used["alone"] * STEP_SECONDS)


def test_the_rest_of_the_loop_goes_on_between_two_steps() -> None:
    async def main() -> float:
        loop = Loop()
        busy = [asyncio.create_task(loop.busy_job("evil")) for _ in range(1000)]
        longest, before = 0.0, loop.loop.time()
        for _ in range(500):
            await asyncio.sleep(0)
            longest, before = max(longest, loop.loop.time() - before), loop.loop.time()
        for task in busy:
            task.cancel()
        await asyncio.wait(busy)
        return longest

    assert virtual_time.run(main()) <= STEP_SECONDS * 1.01


def test_a_cancelled_waiter_is_cancelled_and_delays_no_other() -> None:
    async def main() -> list[str]:
        loop, said = Loop(), list[str]()

        async def work(name: str) -> None:
            try:
                await asyncio.sleep(1.0)
                said.append(f"{name} goes on")
            except asyncio.CancelledError:
                said.append(f"{name} hears it")
                raise

        async def job(name: str) -> None:
            await MeteredCoroutine(work(name), loop.queue, "team")

        tasks = [asyncio.create_task(job(name)) for name in ("first", "second", "third")]
        # All of them wait for the same moment; the second one is cancelled before any continues.
        asyncio.get_running_loop().call_later(1.0, tasks[1].cancel)
        await asyncio.wait(tasks)
        return said

    said = virtual_time.run(main())
    assert sorted(said) == ["first goes on", "second hears it", "third goes on"]


def test_short_steps_share_an_iteration_of_the_loop_and_use_more_of_it_while_other_tasks_use_more() -> None:
    async def main(others_seconds: float) -> float:
        loop = Loop()
        busy = [asyncio.create_task(loop.busy_job("alone", 0.0001)) for _ in range(300)]
        iterations, before = 600, 0
        for number in range(iterations):
            # The first iterations measure how long the steps are.
            if number == iterations // 2:
                before = loop.used["alone"]
            loop.loop.advance(others_seconds)
            await asyncio.sleep(0)
        steps = loop.used["alone"] - before
        for task in busy:
            task.cancel()
        await asyncio.wait(busy)
        return steps / (iterations // 2)

    idle, loaded = virtual_time.run(main(0.0)), virtual_time.run(main(0.005))
    assert idle > 5.0
    assert loaded > 2.0 * idle


async def decide_and_act(loop: Loop, number: int, order: list[tuple[str, int]]) -> None:
    """Take a step before the status of a job is written, and two after it."""

    async def work() -> None:
        loop.loop.advance(STEP_SECONDS)
        order.append(("decision", number))
        meter.place = Place(Stage.ACTION, number)
        for _ in range(2):
            await asyncio.sleep(0)
            loop.loop.advance(STEP_SECONDS)
            order.append(("action", number))

    meter = MeteredCoroutine(work(), loop.queue, "team")
    await meter


def test_all_decisions_of_a_namespace_are_before_its_actions_and_these_go_job_by_job() -> None:
    async def main() -> list[tuple[str, int]]:
        loop, order = Loop(), list[tuple[str, int]]()
        await asyncio.gather(*(decide_and_act(loop, number, order) for number in reversed(range(100))))
        return order

    order = virtual_time.run(main())
    decisions, actions = order[:100], order[100:]
    assert decisions == [("decision", number) for number in reversed(range(100))]
    # A job that has just acted may wait for its turn a little later than the next job.
    assert all(kind == "action" and abs(place // 2 - number) <= 2 for place, (kind, number) in enumerate(actions))


async def time_decision_and_actions(loop: Loop, number: int, busy: list[asyncio.Task[None]]) -> float:
    """Return the seconds that a decision and its actions take beside these tasks, and end the tasks."""
    began = loop.loop.time()
    await decide_and_act(loop, number, [])
    for task in busy:
        task.cancel()
    await asyncio.wait(busy)
    return loop.loop.time() - began


def test_actions_wait_a_limited_time_while_other_reconciles_decide() -> None:
    async def main() -> float:
        loop = Loop()
        busy = [asyncio.create_task(loop.busy_job("team")) for _ in range(1000)]
        return await time_decision_and_actions(loop, 1, busy)

    # The decision itself waits for the first step of each of the other jobs.
    decision_seconds = (1000 + 2) * STEP_SECONDS
    assert virtual_time.run(main()) <= decision_seconds + 2 * (MAX_ACTION_WAIT_SECONDS + 2 * STEP_SECONDS)


def test_an_action_of_a_late_job_waits_a_limited_time_for_earlier_jobs() -> None:
    async def act(loop: Loop, number: int) -> None:
        async def work() -> None:
            while True:
                loop.loop.advance(STEP_SECONDS)
                await asyncio.sleep(0)

        meter = MeteredCoroutine(work(), loop.queue, "team")
        meter.place = Place(Stage.ACTION, number)
        await meter

    async def main() -> float:
        loop = Loop()
        busy = [asyncio.create_task(act(loop, 1)) for _ in range(100)]
        busy += [asyncio.create_task(loop.busy_job("team")) for _ in range(100)]
        return await time_decision_and_actions(loop, 2, busy)

    # Its decision, and two actions, each of which is behind those that are older.
    assert virtual_time.run(main()) <= 201 * STEP_SECONDS + 2 * (MAX_ACTION_WAIT_SECONDS + 201 * STEP_SECONDS)
