"""How soon a node's change of state is reported."""

import math
from dataclasses import replace

import pytest

from muster_worker.agent.report_delay import BRIEF_SECONDS, compute_report_delay
from muster_worker.agent.state import LauncherRecord, NodeState, RankRecord
from muster_worker.agent.trainer_progress import TrainerProgress, TrainerReport
from muster_worker.contract.schema import AgentPhase, AgentProblem
from muster_worker.rank_group.mean_speed import SpeedSamples

WAITING = RankRecord(0, 0)
RUNNING = replace(WAITING, started_at=1.0)
ENDED = replace(RUNNING, ended_at=2.0, exit_code=1)
READY = NodeState("uid", 0, 0, phase=AgentPhase.READY)
STARTING = replace(READY, attempt=1, phase=AgentPhase.RUNNING, ranks=(WAITING, WAITING))
STARTED = replace(STARTING, ranks=(RUNNING, RUNNING))
TRAINER = TrainerProgress(TrainerReport(1.0, percent=5), SpeedSamples())
STOPPING = replace(STARTED, phase=AgentPhase.STOPPING)


@pytest.mark.parametrize(
    ("before", "after", "seconds"),
    [
        (STARTED, STARTED, math.inf),
        (STARTED, replace(STARTED, trainer=TRAINER), math.inf),
        (READY, STARTING, BRIEF_SECONDS),
        (STARTING, replace(STARTING, ranks=(RUNNING, WAITING)), BRIEF_SECONDS),
        (STARTING, STARTED, 0.0),
        (STARTED, replace(STARTED, ranks=(RUNNING, ENDED)), 0.0),
        (STARTING, replace(STARTING, ranks=(WAITING, ENDED)), 0.0),
        (STARTING, replace(STARTING, launcher=LauncherRecord("torchrun", 2.0, 1, None)), 0.0),
        (STARTED, STOPPING, BRIEF_SECONDS),
        (STOPPING, replace(STOPPING, ranks=(ENDED, RUNNING)), BRIEF_SECONDS),
        (STOPPING, replace(STOPPING, phase=AgentPhase.ENDED), 0.0),
        # The operator waits for these.
        (STARTED, replace(STOPPING, stop_call=3), 0.0),
        (STARTED, replace(STOPPING, terminated_at=2.0), 0.0),
        (STARTING, replace(STARTING, problem=AgentProblem("NoPort", "none is free")), 0.0),
    ],
)
def test_a_state_that_lasts_a_moment_is_reported_with_the_next_one(
    before: NodeState, after: NodeState, seconds: float
) -> None:
    assert compute_report_delay(before, after) == seconds
