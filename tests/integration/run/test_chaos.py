"""Minutes of random faults over jobs of `muster run`: each completes all its steps, and leaves nothing."""

import os
import random
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import pytest

from integration.run.chaos import END_SECONDS, begin, disturb, find_problems

pytestmark = pytest.mark.long

MINUTES = float(os.environ.get("MUSTER_CHAOS_MINUTES", "1"))
SEED = int(os.environ.get("MUSTER_CHAOS_SEED", "0")) or random.SystemRandom().randrange(1, 1_000_000)
JOBS_PER_BATCH = 3


@pytest.mark.timeout(60 * MINUTES + 3 * END_SECONDS)
def test_every_job_survives_its_faults(tmp_path: Path) -> None:
    deadline = time.monotonic() + 60 * MINUTES
    numbers = count()

    def run_jobs() -> list[str]:
        problems = []
        while time.monotonic() < deadline:
            number = next(numbers)
            # Each job has its own numbers, so that it is the same again whatever the others do.
            victim = begin(tmp_path / f"chaos-{number}", f"chaos-{number}", random.Random(f"{SEED}-{number}"))  # noqa: S311
            disturb(victim)
            problems += [f"job {number} {victim.shape} {victim.done}: {found}" for found in find_problems(victim)]
        return problems

    with ThreadPoolExecutor(JOBS_PER_BATCH) as slots:
        running = [slots.submit(run_jobs) for _ in range(JOBS_PER_BATCH)]
        problems = [problem for slot in running for problem in slot.result()]
    print(f"seed {SEED}: {next(numbers)} jobs")  # noqa: T201 - to reproduce it
    assert problems == [], f"seed {SEED}\n" + "\n".join(problems)
