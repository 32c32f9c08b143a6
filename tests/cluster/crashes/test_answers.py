"""The API server refuses, fails, drops or delays every call of a job's life. The operator continues."""

from asyncio import gather
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import cycle

import pytest

from cluster.api_proxy import PASS, Answer, Call, Drop, Fate, Lose, Pass, Stream, error_event
from cluster.crashes.bench import Accident, AtEveryStep, AtStep, Bench, Together
from cluster.crashes.footprints import Step
from cluster.crashes.lives import COMPLETES, FAILS
from cluster.crashes.records import Record, side_by_side

pytestmark = pytest.mark.long

TEST_SECONDS = 900
IN_A_ROW = 5
SPREAD = 7
"""Every n-th step of a scenario fails this often: one reconciliation has fewer steps, and backoffs grow until one
succeeds.

The number is coprime to the number of fates, so each scenario has as many of them as possible.
"""

AT_ONCE = 3
"""Scenarios that one operator runs at the same time."""

LATE_SECONDS = 21.0
"""Longer than the operator waits for an answer; the API server executes the request nevertheless."""

FATES: Mapping[str, Fate] = {
    "409": Answer(409, "Conflict"),
    "410": Answer(410, "Expired"),
    "429": Answer(429, "TooManyRequests", retry_after=1),
    "500": Answer(500, "InternalError"),
    "not sent": Drop(),
    "no answer": Lose(),
}
LATE = (Step("create pods -0-0", 1), Step("create events Completed", 1))


@dataclass(frozen=True)
class Case:
    """An accident in a scenario, or in the operator's start before it."""

    name: str
    record: Record
    accident: Accident
    at_start: bool = False


def cases_of(records: tuple[Record, ...]) -> list[Case]:
    """Each fate at all steps of a scenario; each step with one repeated fate, several in one scenario; some
    time-outs.
    """
    cases = [
        Case(f"{record.life.name}, every step, {name}", record, AtEveryStep(_always(fate)))
        for record in records
        for name, fate in FATES.items()
    ]
    for record in records:
        for first in range(SPREAD):
            again = tuple(
                AtStep(step, _always(fate), IN_A_ROW)
                for step, fate in list(zip(record.steps, cycle(FATES.values())))[first::SPREAD]
            )
            cases.append(Case(f"{record.life.name}, again and again, steps {first}::{SPREAD}", record, Together(again)))
    whole = next(record for record in records if record.life is COMPLETES)
    return [*(Case(f"{step}, late", whole, AtStep(step, _always(Pass(LATE_SECONDS)))) for step in LATE), *cases]


def starts_of(record: Record) -> list[Case]:
    """Each fate at all steps of the operator's start."""
    return [
        Case(f"start, every step, {name}", record, AtEveryStep(_always(fate)), at_start=True)
        for name, fate in FATES.items()
    ]


def _always(fate: Fate) -> Callable[[], Fate]:
    return lambda: fate


@pytest.mark.timeout(TEST_SECONDS)
async def test_jobs_end_as_if_the_api_server_had_done_its_duty(
    benches: tuple[Bench, ...], records: tuple[Record, ...]
) -> None:
    problems: list[str] = []

    async def live(bench: Bench, case: Case) -> None:
        live_with = bench.start if case.at_start else bench.run
        result = await live_with(case.record.life, case.accident, case.record.clean)
        if result:
            problems.append(f"{case.name}: {result}")

    starts = starts_of(next(record for record in records if record.life is FAILS))
    lives = cases_of(records)
    starting, leading = benches[: len(starts)], benches[len(starts) :]

    async def start_first() -> None:
        # Alone with its own new operator.
        await side_by_side(starting, starts, live)
        await side_by_side(starting * AT_ONCE, lives, live)

    await gather(start_first(), side_by_side(leading * AT_ONCE, lives, live))
    assert problems == [], "\n".join(problems)


@pytest.mark.timeout(TEST_SECONDS)
async def test_jobs_end_as_if_no_watch_had_broken(benches: tuple[Bench, ...], records: tuple[Record, ...]) -> None:
    problems: list[str] = []

    async def live(bench: Bench, case: tuple[Record, bool]) -> None:
        record, forgets = case
        broken: set[str] = set()

        def cut() -> Fate:
            broken.update(("pods", "events", "distributedtrainingjobs") if forgets else ())
            bench.proxy.cut_watches()
            return PASS

        def watched(call: Call) -> Fate:
            if call.resource not in broken:
                return PASS
            broken.remove(call.resource)
            return Stream(error_event(410, "Expired"))

        bench.watch_fate = watched
        result = await bench.run(record.life, AtEveryStep(cut), record.clean)
        if result:
            problems.append(f"{record.life.name}, watches that {'are too old' if forgets else 'break'}: {result}")

    await side_by_side(benches, [(record, forgets) for record in records for forgets in (False, True)], live)
    assert problems == [], "\n".join(problems)
