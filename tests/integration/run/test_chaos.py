"""Minutes of random faults over jobs of `muster run`: each completes all its steps, and leaves nothing."""

import random
from pathlib import Path

import pytest

from integration.run.chaos import END_SECONDS, begin, disturb, find_problems
from support.chaos_run import MINUTES, check_jobs

pytestmark = pytest.mark.long


@pytest.mark.timeout(60 * MINUTES + 3 * END_SECONDS)
def test_every_job_survives_its_faults(tmp_path: Path) -> None:
    def run_job(name: str, chance: random.Random) -> list[str]:
        victim = begin(tmp_path / name, name, chance)
        disturb(victim)
        return [f"{victim.shape} {victim.done}: {found}" for found in find_problems(victim)]

    check_jobs(run_job)
