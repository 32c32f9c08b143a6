"""Restarts, suspensions and resumes that a user requests, with the operator and real pods."""

import json
import time

import pytest

from cluster.muster_command import Muster
from cluster.operator.cluster_jobs import FOREVER
from cluster.reasons.stage import Stage, template
from cluster.reasons.test_restarts import SAYS_ATTEMPT, history, runs, uids
from cluster.say import say
from cluster.torch_volume import TorchVolume

SHAPE: dict[str, object] = {"nodes": 2, "procsPerNode": 2}
WANTED_SECONDS = 2.0
REQUESTED = (1, "RestartRequested", "Nothing", 0)

IGNORES_SIGTERM_ONCE = f"""
import os, signal, time
def save(*_):
    print("saved by rank", os.environ["RANK"], flush=True)
    time.sleep(0.5)
    raise SystemExit(0)
signal.signal(signal.SIGTERM, save)
print("rank", os.environ["RANK"], "attempt", os.environ["MUSTER_ATTEMPT"], flush=True)
{FOREVER}
"""


def command(stage: Stage) -> Muster:
    return Muster(stage.kubectl.kubeconfig, stage.namespace)


def restart(stage: Stage, name: str) -> float:
    """Run `muster restart` to its end; return its seconds."""
    began = time.monotonic()
    done = command(stage)("restart", name)
    seconds = time.monotonic() - began
    assert done.returncode == 0, done.stderr
    say(f"{name}: {done.stderr.splitlines()[-1]}; the command took {seconds:.2f} s")
    return seconds


@pytest.mark.parametrize("launcher", ["direct", "torchrun"])
def test_a_restart_costs_no_pod_and_no_budget(stage: Stage, torch_for_pods: TorchVolume, launcher: str) -> None:
    name = f"again-{launcher}"
    torch = {"volumeMounts": list(torch_for_pods.mounts), "env": list(torch_for_pods.env)}
    with_torch = template(torch, volumes=list(torch_for_pods.volumes))
    stage.apply(name, SAYS_ATTEMPT, **SHAPE, launcher={launcher: {}}, template=with_torch)
    runs(stage, name, 1)
    before = uids(stage, name)
    restart(stage, name)
    after = runs(stage, name, 2)

    assert uids(stage, name) == before
    assert history(after.status) == [REQUESTED]
    restarts = after.status["restarts"]
    assert (restarts["total"], restarts["failures"], restarts["disruptions"]) == (1, 0, 0)
    logs = "".join(stage.jobs.log(f"{name}-{node}-0") for node in range(2))
    assert all(logs.count(f"rank {rank} attempt 2") == 1 for rank in range(4))
    restart(stage, name)
    assert [entry[1] for entry in history(runs(stage, name, 3).status)] == ["RestartRequested"] * 2


def test_ranks_may_save_first_and_the_restart_is_quick(stage: Stage) -> None:
    stage.apply("saves", IGNORES_SIGTERM_ONCE, **SHAPE, template=template())
    runs(stage, "saves", 1)
    restart(stage, "saves")
    lost = [entry["secondsLost"] for entry in runs(stage, "saves", 2).status["restarts"]["history"]]
    say(f"saves: {lost} s from the decision until all ranks ran")
    logs = "".join(stage.jobs.log(f"saves-{node}-0") for node in range(2))
    assert all(f"saved by rank {rank}" in logs for rank in range(4))


def test_an_operator_that_is_killed_after_the_request_restarts_once(stage: Stage) -> None:
    stage.apply("asked", SAYS_ATTEMPT, **SHAPE)
    runs(stage, "asked", 1)
    stage.operator.end()
    assert command(stage)("restart", "asked", "--no-wait").returncode == 0
    stage.operator.start()
    after = runs(stage, "asked", 2)
    assert history(after.status) == [REQUESTED]
    # the same in the middle: the status has the request, and the ranks are being stopped
    assert command(stage)("restart", "asked", "--no-wait").returncode == 0
    stage.timeline.first(
        lambda seen: (
            seen.kind == "Job"
            and seen.name == "asked"
            and "stoppingSince" in (seen.status.get("restartRequest") or {})
            and seen.status["attempt"] == 2
        )
    )
    stage.operator.end()
    stage.operator.start()
    assert [entry[0] for entry in history(runs(stage, "asked", 3).status)] == [1, 2]
    logs = "".join(stage.jobs.log(f"asked-{node}-0") for node in range(2))
    assert all(logs.count(f"rank {rank} attempt {attempt}") == 1 for rank in range(4) for attempt in (2, 3))


def test_any_text_is_a_request_and_hurts_nobody(stage: Stage) -> None:
    stage.apply("odd", SAYS_ATTEMPT, nodes=1, procsPerNode=2)
    runs(stage, "odd", 1)
    patch = {"metadata": {"annotations": {"muster.dev/restart-requested-at": "\u0000\U0001f4a5'\"}{" + 100_000 * "x"}}}
    stage.jobs.run("patch", "dtj/odd", "--type=merge", "--patch-file=/dev/stdin", stdin=json.dumps(patch))
    after = runs(stage, "odd", 2)
    assert history(after.status) == [REQUESTED]
    assert len(after.status["restartRequest"]["value"]) == 64


def test_suspend_and_resume_with_an_operator_killed_between(stage: Stage) -> None:
    stage.apply("rests", SAYS_ATTEMPT, **SHAPE)
    runs(stage, "rests", 1)
    muster = command(stage)
    assert muster("suspend", "rests", "--no-wait").returncode == 0
    stage.operator.end()
    stage.operator.start()
    assert muster("suspend", "rests").returncode == 0
    assert uids(stage, "rests") == {}
    denied = muster("restart", "rests")
    assert "is suspended; `muster resume rests` starts its ranks" in denied.stderr
    done = muster("resume", "rests")
    assert done.returncode == 0, done.stderr
    after = runs(stage, "rests", 2)
    assert set(uids(stage, "rests")) == {"rests-0-1", "rests-1-1"}
    assert "restarts" not in after.status
