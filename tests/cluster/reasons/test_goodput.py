"""Goodput as the resource shows it."""

import json
from typing import Any

import pytest

from cluster.reasons import machine
from cluster.reasons.stage import Stage
from cluster.reasons.timeline import ObservedChange

# A step each 0.1 s; every attempt after the first one begins with step 5.
REPORTS_STEPS = """
import os, time
import muster_worker
step = 0 if os.environ["MUSTER_ATTEMPT"] == "1" else 5
muster_worker.report(step=step)
while not (os.environ["MUSTER_ATTEMPT"] == "2" and step >= 60):
    time.sleep(0.1)
    step += 1
    muster_worker.report(step=step)
"""


def first(stage: Stage, attempt: int, step: int) -> ObservedChange:
    """Wait until the attempt has reached the step."""
    return stage.timeline.first(
        lambda seen: (
            seen.kind == "Job"
            and seen.name == "useful"
            and seen.status.get("attempt") == attempt
            and (seen.status.get("progress", {}).get("step") or 0) >= step
        )
    )


def test_a_failure_costs_steps_and_time(stage: Stage) -> None:
    stage.apply("useful", REPORTS_STEPS, nodes=2, procsPerNode=1, failurePolicy={"maxRestarts": 1})
    first(stage, 1, 20)
    machine.kill(machine.rank(stage.started_pod("useful", 1), 1))
    stage.completes("useful")

    status: Any = json.loads(stage.jobs.run("get", "dtj/useful", "--output=json"))["status"]
    (record,) = status["restarts"]["history"]
    assert record["scriptStep"] >= 20
    assert record["stepsLost"] == record["scriptStep"] - 5
    goodput = status["goodput"]
    lost = {entry["cause"]: entry["seconds"] for entry in goodput["lost"]}
    assert {"Start", "Failure", "Recomputation"} <= set(lost)
    assert goodput["totalSeconds"] == pytest.approx(goodput["productiveSeconds"] + sum(lost.values()), abs=0.02)
    assert 0 < goodput["ratio"] < 1
    # Attempt 1 made at least 20 new steps, and attempt 2 repeated at least 15 of 0.1 s.
    assert goodput["productiveSeconds"] >= 1.9
    assert lost["Recomputation"] >= 1.4
    assert (goodput["device"], goodput["step"]) == ("rank", 60)
