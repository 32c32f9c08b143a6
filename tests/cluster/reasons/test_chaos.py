"""Minutes of random faults over jobs on the cluster: each ends as it has to, and leaves nothing."""

import os
import random
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import pytest

from cluster.reasons.chaos import END_SECONDS, START_SECONDS, begin, disturb
from cluster.reasons.chaos_verdict import describe_end, find_problems
from cluster.reasons.stage import Stage
from cluster.say import say
from cluster.torch_volume import TorchVolume

pytestmark = [pytest.mark.long, pytest.mark.alone]

MINUTES = float(os.environ.get("MUSTER_CHAOS_MINUTES", "1"))
SEED = int(os.environ.get("MUSTER_CHAOS_SEED", "0")) or random.SystemRandom().randrange(1, 1_000_000)
JOBS_AT_ONCE = 3


@pytest.mark.timeout(60 * MINUTES + 3 * (START_SECONDS + END_SECONDS))
def test_every_job_ends_as_it_has_to(stage: Stage, torch_for_pods: TorchVolume, tmp_path: Path) -> None:
    deadline = time.monotonic() + 60 * MINUTES
    numbers = count()

    def run_jobs() -> list[str]:
        problems = []
        while time.monotonic() < deadline:
            number = next(numbers)
            name, chance = f"chaos-{number}", random.Random(f"{SEED}-{number}")  # noqa: S311 - to be reproducible
            victim = begin(stage, name, tmp_path / name, torch_for_pods, chance)
            disturb(victim)
            say(f"{name} {victim.shape}: {', '.join(victim.done)}; {describe_end(victim)}")
            problems += [f"job {number} {victim.shape} {victim.done}: {found}" for found in find_problems(victim)]
        return problems

    with ThreadPoolExecutor(JOBS_AT_ONCE) as slots:
        running = [slots.submit(run_jobs) for _ in range(JOBS_AT_ONCE)]
        problems = [problem for slot in running for problem in slot.result()]
    print(f"seed {SEED}: {next(numbers)} jobs")  # noqa: T201 - to reproduce it
    assert problems == [], f"seed {SEED}\n" + "\n".join(problems)
