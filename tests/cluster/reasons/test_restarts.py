"""Jobs that continue after a failure in the remaining pods, as users and `kubectl get` see them."""

import json
from typing import Any

import pytest

from cluster.operator.cluster_jobs import FOREVER
from cluster.reasons import machine
from cluster.reasons.stage import Stage, template
from cluster.reasons.timeline import ObservedChange
from cluster.torch_volume import TorchVolume

POLICY = {"maxRestarts": 3}
SHAPE: dict[str, object] = {"nodes": 2, "procsPerNode": 2, "failurePolicy": POLICY}

SAYS_ATTEMPT = f"""
import os
print("rank", os.environ["RANK"], "attempt", os.environ["MUSTER_ATTEMPT"], flush=True)
{FOREVER}
"""


def runs(stage: Stage, name: str, attempt: int) -> ObservedChange:
    """Wait until all ranks of the attempt run."""
    return stage.timeline.first(
        lambda seen: (
            seen.kind == "Job"
            and seen.name == name
            and seen.status.get("attempt") == attempt
            and seen.status["ranks"]["running"] == seen.status["ranks"]["world"]
        )
    )


def history(status: Any) -> list[tuple[int, str, str, int]]:
    return [
        (entry["attempt"], entry["reason"], entry["countsAs"], entry["replacedPods"])
        for entry in status.get("restarts", {}).get("history", [])
    ]


def uids(stage: Stage, name: str) -> dict[str, str]:
    pods = json.loads(stage.jobs.run("get", "pods", f"--selector=muster.dev/job={name}", "--output=json"))["items"]
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in pods}


@pytest.mark.parametrize("launcher", ["direct", "torchrun"])
def test_a_killed_rank_costs_no_pod(stage: Stage, torch_for_pods: TorchVolume, launcher: str) -> None:
    name = f"killed-{launcher}"
    torch = {"volumeMounts": list(torch_for_pods.mounts), "env": list(torch_for_pods.env)}
    with_torch = template(torch, volumes=list(torch_for_pods.volumes))
    stage.apply(name, SAYS_ATTEMPT, **SHAPE, launcher={launcher: {}}, template=with_torch)
    runs(stage, name, 1)
    before = uids(stage, name)
    pod = stage.started_pod(name, 1)
    machine.kill(machine.rank(pod, 2))
    after = runs(stage, name, 2)

    assert uids(stage, name) == before
    assert history(after.status) == [(1, "RankKilled", "Failure", 0)]
    assert after.status["restarts"]["total"] == 1
    assert "RESTARTS" in stage.jobs.run("get", f"dtj/{name}")
    events = stage.jobs.run("get", "events", f"--field-selector=involvedObject.name={name}")
    assert "Restarting" in events
    assert f"Rank 2 on {name}-1 was killed by SIGKILL" in events


def test_a_deleted_pod_is_replaced_and_the_others_stay(stage: Stage) -> None:
    stage.apply("robbed", SAYS_ATTEMPT, **SHAPE)
    runs(stage, "robbed", 1)
    before = uids(stage, "robbed")
    stage.jobs.run("delete", "pod", "robbed-1-0", "--wait=false")
    after = runs(stage, "robbed", 2)

    assert [entry[2] for entry in history(after.status)] == ["Disruption"]
    stage.until(lambda: "robbed-1-0" not in uids(stage, "robbed"))
    left = uids(stage, "robbed")
    assert left["robbed-0-0"] == before["robbed-0-0"]
    assert set(left) == {"robbed-0-0", "robbed-1-1"}


def test_scope_pods_replaces_all_pods(stage: Stage) -> None:
    stage.apply("anew", SAYS_ATTEMPT, **{**SHAPE, "failurePolicy": {**POLICY, "restartScope": "Pods"}})
    runs(stage, "anew", 1)
    machine.kill(machine.rank(stage.started_pod("anew", 0), 0))
    after = runs(stage, "anew", 2)
    assert history(after.status) == [(1, "RankKilled", "Failure", 2)]
    stage.until(lambda: set(uids(stage, "anew")) == {"anew-0-1", "anew-1-1"})


def test_a_used_budget_ends_the_job(stage: Stage) -> None:
    stage.apply("spent", "import sys; sys.exit(3)", nodes=1, failurePolicy={"maxRestarts": 1})
    over = stage.timeline.first(
        lambda seen: seen.kind == "Job" and seen.name == "spent" and seen.status.get("phase") == "Failed"
    )
    assert (over.status["attempt"], history(over.status)) == (2, [(1, "RankFailed", "Failure", 0)])
    assert over.status["message"].endswith("not restarted: failurePolicy.maxRestarts (1) is used up")


def test_an_operator_that_is_killed_between_two_attempts_restarts_once(stage: Stage) -> None:
    stage.apply("handed", SAYS_ATTEMPT, **SHAPE)
    runs(stage, "handed", 1)
    machine.kill(machine.rank(stage.started_pod("handed", 1), 3))
    stage.timeline.first(
        lambda seen: seen.kind == "Job" and seen.name == "handed" and seen.status.get("phase") != "Running"
    )
    stage.operator.end()
    stage.operator.start()
    after = runs(stage, "handed", 2)
    assert history(after.status) == [(1, "RankKilled", "Failure", 0)]
    logs = "".join(stage.jobs.log(f"handed-{node}-0") for node in range(2))
    assert all(logs.count(f"rank {rank} attempt 2") == 1 for rank in range(4))
