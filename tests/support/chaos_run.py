"""Runs one job with random faults after the other, several at once, until the time of the chaos test is over."""

import os
import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count

MINUTES = float(os.environ.get("MUSTER_CHAOS_MINUTES", "1"))
SEED = int(os.environ.get("MUSTER_CHAOS_SEED", "0")) or random.SystemRandom().randrange(1, 1_000_000)
JOBS_AT_ONCE = 3


def check_jobs(run_job: Callable[[str, random.Random], list[str]]) -> None:
    """Run jobs for `MINUTES`, and fail if any has a problem.

    `run_job` gets the job's name and its random numbers, runs the job to its end, and returns its problems.
    """
    deadline = time.monotonic() + 60 * MINUTES
    numbers = count()

    def run_jobs() -> list[str]:
        problems = []
        while time.monotonic() < deadline:
            number = next(numbers)
            # Each job has its own random numbers, so that it is reproducible beside any other jobs.
            chance = random.Random(f"{SEED}-{number}")  # noqa: S311 - to be reproducible
            problems += [f"job {number} {problem}" for problem in run_job(f"chaos-{number}", chance)]
        return problems

    with ThreadPoolExecutor(JOBS_AT_ONCE) as slots:
        running = [slots.submit(run_jobs) for _ in range(JOBS_AT_ONCE)]
        problems = [problem for slot in running for problem in slot.result()]
    print(f"seed {SEED}: {next(numbers)} jobs")  # noqa: T201 - to reproduce it
    assert problems == [], f"seed {SEED}\n" + "\n".join(problems)
