"""Lives in which nothing happens: which calls they are made of, and how they end."""

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
    """`steps` are those of every such life; the way to the first start, the same in all, is the first life's alone."""

    life: Life
    steps: tuple[Step, ...]
    clean: Ending


async def record_all(benches: Sequence[Bench]) -> tuple[Record, ...]:
    """Each life twice, side by side."""
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
    """Live all cases that wait, one at a time on each of the benches; a bench may be given several times.

    Who is called with the same `waiting` meanwhile shares in the work.
    """

    async def work(bench: Bench) -> None:
        while waiting:
            await live(bench, waiting.pop(0))

    await asyncio.gather(*map(work, benches))
