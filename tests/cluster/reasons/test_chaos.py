"""Minutes of random faults over jobs on the cluster: each ends as it has to, and leaves nothing."""

import random
from pathlib import Path

import pytest

from cluster.reasons.chaos import END_SECONDS, START_SECONDS, begin, disturb
from cluster.reasons.chaos_verdict import describe_end, find_problems
from cluster.reasons.stage import Stage
from cluster.say import say
from cluster.torch_volume import TorchVolume
from support.chaos_run import MINUTES, check_jobs

pytestmark = [pytest.mark.long, pytest.mark.alone]


@pytest.mark.timeout(60 * MINUTES + 3 * (START_SECONDS + END_SECONDS))
def test_every_job_ends_as_it_has_to(stage: Stage, torch_for_pods: TorchVolume, tmp_path: Path) -> None:
    def run_job(name: str, chance: random.Random) -> list[str]:
        victim = begin(stage, name, tmp_path / name, torch_for_pods, chance)
        disturb(victim)
        say(f"{name} {victim.shape}: {', '.join(victim.done)}; {describe_end(victim)}")
        return [f"{victim.shape} {victim.done}: {found}" for found in find_problems(victim)]

    check_jobs(run_job)
