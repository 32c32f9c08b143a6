"""Jobs that continue after a failure in the remaining pods, as users and `kubectl get` see them."""

from typing import Any

from cluster.operator.cluster_jobs import FOREVER
from cluster.reasons import machine
from cluster.reasons.stage import Stage
from cluster.reasons.timeline import ObservedChange

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
    pods = stage.kubectl.list(stage.namespace, "pods", f"muster.dev/job={name}")
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in pods}


def test_scope_pods_replaces_all_pods(stage: Stage) -> None:
    stage.apply("anew", SAYS_ATTEMPT, **{**SHAPE, "failurePolicy": {**POLICY, "restartScope": "Pods"}})
    runs(stage, "anew", 1)
    machine.kill(machine.rank(stage.started_pod("anew", 0), 0))
    after = runs(stage, "anew", 2)
    assert history(after.status) == [(1, "RankKilled", "Failure", 2)]
    stage.until(lambda: set(uids(stage, "anew")) == {"anew-0-1", "anew-1-1"})
