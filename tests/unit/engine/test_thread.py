"""Long computations run beside the event loop, and count as the task's own time."""

import asyncio
import threading
from collections.abc import Sequence

import pytest

from muster.api.spec.job import Job
from muster.api.status.status import Status
from muster.backends.node_jobs import NodeDecisions, NodeJobBackend
from muster.core.actions import Action
from muster.core.facts import JobFacts
from muster.engine.reconcile import MAX_RANKS_IN_EVENT_LOOP, reconcile
from muster.engine.thread import report_cpu_seconds, run_in_thread
from support.loop_rounds import measured_rounds
from unit.core.builders import START, facts, job, rank, running_node

RANKS = 5 * MAX_RANKS_IN_EVENT_LOOP


class Recorder:
    """A world that is only read."""

    def __init__(self, current: JobFacts) -> None:
        self.known = current
        self.written = Status()

    async def observe(self, _: Job) -> JobFacts:
        return self.known

    async def write(self, status: Status) -> None:
        self.written = status

    write_now = write

    async def apply(self, _: Job, actions: Sequence[Action]) -> None:
        assert not actions


async def test_the_loop_goes_on_while_something_is_computed_apart() -> None:
    loop, came = asyncio.get_running_loop(), threading.Event()
    loop.call_soon(came.set)
    assert await run_in_thread("team", lambda: came.wait(10))


async def test_what_is_computed_apart_is_charged_to_who_waits_for_it() -> None:
    charged: list[float] = []
    report_cpu_seconds.set(charged.append)
    assert await run_in_thread("team", lambda: sum(range(1_000_000))) == 499999500000
    assert charged[0] > 0.0


async def test_a_failure_apart_is_the_callers() -> None:
    with pytest.raises(ZeroDivisionError):
        await run_in_thread("team", lambda: 1 // 0)


async def test_namespaces_take_turns_in_the_thread() -> None:
    done: list[str] = []
    gate = threading.Event()

    async def compute(namespace: str, name: str) -> None:
        done.append(await run_in_thread(namespace, lambda: name))

    first = asyncio.create_task(run_in_thread("many", lambda: gate.wait(10)))
    many = [asyncio.create_task(compute("many", f"many-{number}")) for number in range(5)]
    few = asyncio.create_task(compute("few", "few"))
    await asyncio.sleep(0)
    gate.set()
    await asyncio.gather(first, few, *many)
    assert done.index("few") <= 1


async def test_a_turn_of_many_ranks_does_not_hold_the_loop() -> None:
    current = facts(*(running_node(node, *(rank(node * 10 + one) for one in range(10))) for node in range(RANKS // 10)))
    world = Recorder(current)
    async with measured_rounds() as rounds:
        result = await reconcile(job(RANKS // 10, 10), Status(), NodeJobBackend(world, NodeDecisions(1)), world, START)
    assert result.status.ranks is not None
    assert result.status.ranks.world == RANKS
    # the computation takes a tenth of a second or more
    assert rounds.longest < 0.03
