"""The operator is killed at every call of a job's life: before the API server gets it, and after it but before the
answer.
"""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from cluster.api_proxy import Drop, Lose
from cluster.crashes.bench import AtStep, Bench
from cluster.crashes.footprints import Step
from cluster.crashes.lives import FAILS
from cluster.crashes.records import Record, side_by_side

pytestmark = pytest.mark.long

TEST_SECONDS = 900
ATTEMPTS = 3
"""The number of tries: some calls, such as a write of progress, don't occur in each run."""


@dataclass(frozen=True)
class Case:
    """A kill at one step of one scenario, or of the operator's start before that scenario."""

    record: Record
    step: Step
    fate: Callable[[Callable[[], None]], Drop | Lose]
    at_start: bool = False

    def __str__(self) -> str:
        return f"{'start' if self.at_start else self.record.life.name}, {self.step}, {self.fate.__name__}"


def cases_of(record: Record, steps: tuple[Step, ...], *, at_start: bool) -> list[Case]:
    """Leave out reads that were executed: they have the same effect as reads that were not sent."""
    return [
        Case(record, step, fate, at_start) for step in steps for fate in ((Drop, Lose) if step.is_change else (Drop,))
    ]


@pytest.mark.timeout(TEST_SECONDS)
async def test_a_killed_operators_jobs_end_as_if_nothing_had_happened(
    benches: tuple[Bench, ...], records: tuple[Record, ...]
) -> None:
    begun = next(record for record in records if record.life is FAILS)
    starting = await benches[0].record_start(FAILS)
    cases = [case for record in records for case in cases_of(record, record.steps, at_start=False)]
    cases += cases_of(begun, starting, at_start=True)
    problems: list[str] = []
    never: list[str] = []

    async def live(bench: Bench, case: Case) -> None:
        for _ in range(ATTEMPTS):
            live_with = bench.start if case.at_start else bench.run
            result = await live_with(
                case.record.life, AtStep(case.step, lambda: case.fate(bench.kill)), case.record.clean
            )
            if result is not None:
                break
        else:
            never.append(str(case))
            return
        if result:
            problems.append(f"{case}: {result}")

    await side_by_side(benches, list(cases), live)
    print(f"{len(cases)} kills; steps that came no more: {never}")  # noqa: T201 - for the reader of a report
    assert problems == [], "\n".join(problems)
    # The ranks that are reported together differ; most steps occur always.
    assert len(never) <= len(cases) // 10, never
