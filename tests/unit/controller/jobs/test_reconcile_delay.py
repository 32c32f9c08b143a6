"""The delay before the next reconcile: long for a busy job, short after an urgent change."""

import asyncio

import pytest

from muster.controller.jobs.reconcile_delay import (
    LOAD_FACTOR,
    MAX_LOAD_DELAY_SECONDS,
    MAX_URGENT_DELAY_SECONDS,
    MIN_DELAY_SECONDS,
    ReconcileDelay,
    make_delay,
)
from support import virtual_time

NOW = 1.8e9


@pytest.mark.parametrize(
    ("share", "used", "wait", "expected"),
    [
        (0.0, 0.002, 0.0, (MIN_DELAY_SECONDS, MIN_DELAY_SECONDS)),
        (0.0, 0.002, 0.013, (LOAD_FACTOR * 0.01, LOAD_FACTOR * 0.01)),
        (0.0, 0.002, 3.0, (MAX_LOAD_DELAY_SECONDS, MAX_LOAD_DELAY_SECONDS)),
        (8.0, 0.3, 0.0, (8.0, 0.3)),
        (60.0, 5.0, 0.0, (60.0, MAX_URGENT_DELAY_SECONDS)),
    ],
    ids=["a small job", "a busy operator", "an overloaded operator", "a large job", "a huge job"],
)
def test_the_delay_grows_with_the_job_and_with_the_load(
    share: float, used: float, wait: float, expected: tuple[float, float]
) -> None:
    delay = make_delay(share, used, wait, None)
    assert (delay.seconds, delay.urgent_seconds) == pytest.approx(expected)


def wait(requeue_at: float | None, urgent_at: float) -> float:
    async def main() -> float:
        loop = asyncio.get_running_loop()
        began = loop.time()
        await ReconcileDelay(8.0, 0.5, requeue_at).wait(NOW, lambda: loop.time() - began >= urgent_at)
        return loop.time() - began

    return virtual_time.run(main())


@pytest.mark.parametrize(
    ("requeue_at", "urgent_at", "expected"),
    [(None, 100.0, 8.0), (NOW + 1.0, 100.0, 8.0), (None, 3.2, 3.5), (None, 0.0, 0.5), (NOW, 100.0, 0.5)],
    ids=["progress", "a deadline", "an urgent change", "one before the delay", "the next step of the last reconcile"],
)
def test_only_an_urgent_change_or_the_next_step_ends_a_long_delay(
    requeue_at: float | None, urgent_at: float, expected: float
) -> None:
    assert wait(requeue_at, urgent_at) == pytest.approx(expected)
