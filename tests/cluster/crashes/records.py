"""Scenarios without accidents: their calls, and their ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from cluster.crashes.bench import Bench
from cluster.crashes.endings import Ending
from cluster.crashes.footprints import Step
from cluster.crashes.lives import LIVES, Life

T = TypeVar("T")
STARTED = Step("create events Started", 1)
PROGRESS = "patch distributedtrainingjobs/status -"


@dataclass(frozen=True)
class Record:
    """`steps` are the steps of each run of the scenario; only the first record has the steps up to the first start,
    which are common to all.
    """

    life: Life
    steps: tuple[Step, ...]
    clean: Ending


async def record_all(benches: Sequence[Bench]) -> tuple[Record, ...]:
    """Run each scenario twice, in parallel."""
    lived = await asyncio.gather(
        *(bench.record(life) for bench, life in zip(benches, (*LIVES, *LIVES), strict=True)),
    )
    records = []
    for number, life in enumerate(LIVES):
        (steps, clean), (again, same) = lived[number], lived[number + len(LIVES)]
        assert same == clean, same.differs(clean)
        stable = tuple(step for step in steps if step in again and step.what != PROGRESS)
        assert STARTED in stable, steps
        begin = 0 if number == 0 else stable.index(STARTED)
        records.append(Record(life, stable[begin:], clean))
    return tuple(records)


async def side_by_side(benches: Sequence[Bench], waiting: list[T], live: Callable[[Bench, T], Awaitable[None]]) -> None:
    """Run all waiting cases, one at a time on each of the benches; a bench may be listed several times.

    Concurrent callers with the same `waiting` share the work.
    """

    async def work(bench: Bench) -> None:
        while waiting:
            await live(bench, waiting.pop(0))

    await asyncio.gather(*map(work, benches))
