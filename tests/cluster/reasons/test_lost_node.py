"""A machine is lost: network and kubelet, while six jobs have a node there. Each ends as expected, in time.

With Kubernetes' default settings: it takes 50 s until the machine is NotReady, and 300 s more until its pods are
evicted.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest

from cluster import lan
from cluster.operator.cluster_jobs import OK
from cluster.reasons import machine
from cluster.reasons.stage import A_SHARE, Stage, template
from cluster.reasons.test_killed_ranks import TORCHRUN, TRAINS
from cluster.reasons.timeline import ObservedChange, Predicate, condition, says
from cluster.say import say
from cluster.shared import Manifest
from cluster.torch_volume import TorchVolume
from muster.core.decide import COMMAND_TIMEOUT_SECONDS
from muster.core.failure.problems import LOST_SECONDS, NODE_SILENT

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

LOST = lan.TROUBLED.name
TOLERATION: Manifest = {"key": lan.TAINT, "operator": "Exists"}
NOT_READY_SECONDS = 50.0
"""Kubernetes' --node-monitor-grace-period, from the kubelet's last report."""

LATE_SECONDS = 60.0
"""The controllers check every 5 s, and two cores have six jobs to stop."""

NODE_LOST_SECONDS = NOT_READY_SECONDS + LOST_SECONDS + LATE_SECONDS
SHORT_CUT_SECONDS = 20.0

FAIL = "/dev/shm/fail"  # noqa: S108 - in the pod, which no other user shares
APART = f"""
import os, time
while not os.path.exists({FAIL!r}):
    time.sleep(0.2)
raise ValueError("bad label")
"""


def placed(**more: object) -> Manifest:
    """Node 0 is on node-1; node 1 on the machine that will be lost, or on node-1 after that."""
    wishes = [
        {
            "weight": 100,
            "preference": {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [LOST]}]},
        }
    ]
    # The scheduler may prefer an empty machine to a wish.
    two = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["node-1", LOST]}]}
    affinity = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [two]},
            "preferredDuringSchedulingIgnoredDuringExecution": wishes,
        }
    }
    prefers = {"affinity": affinity, "tolerations": [TOLERATION]}
    return {
        "nodes": 2,
        "procsPerNode": 1,
        "resources": A_SHARE,
        "nodeOverrides": [
            {"nodes": "0", "template": {"spec": {"nodeSelector": {"kubernetes.io/hostname": "node-1"}}}},
            {"nodes": "1", "template": {"spec": prefers}},
        ],
        **more,
    }


def phase(name: str, wanted: str, after: float) -> Predicate:
    return lambda seen: seen.at > after and seen.kind == "Job" and seen.name == name and _phase(seen) == wanted


def _phase(seen: ObservedChange) -> object:
    return seen.status.get("phase")


def is_silent(name: str, status: str, after: float) -> Predicate:
    def is_it(seen: ObservedChange) -> bool:
        if seen.kind != "Job" or seen.name != name or seen.at < after:
            return False
        stalled = condition(seen, "Stalled")
        return bool(stalled.get("status") == status and (stalled["reason"] == NODE_SILENT) == (status == "True"))

    return is_it


@pytest.fixture
def jobs(stage: Stage, torch_for_pods: TorchVolume) -> Iterator[Stage]:
    """Yield all jobs, with running ranks."""
    torch = {"volumeMounts": list(torch_for_pods.mounts), "env": list(torch_for_pods.env)}
    stage.apply(
        "ring", TRAINS, **placed(launcher=TORCHRUN, template=template(torch, volumes=list(torch_for_pods.volumes)))
    )
    for name in ("apart", "peer", "paused", "late", "again"):
        stage.apply(name, APART, **placed())
    for name in ("ring", "apart", "peer", "paused", "late", "again"):
        stage.runs(name)
        assert stage.started_pod(name, 1)["spec"]["nodeName"] == LOST
    stage.until(partial(_says, stage, "ring-0-0", "is at work"))
    yield stage
    for name in ("ring", "apart", "peer", "paused", "late", "again"):
        stage.jobs.run("delete", f"dtj/{name}", "--wait=false")


def _says(stage: Stage, pod: str, words: str) -> bool:
    return words in stage.jobs.log(pod)


def test_a_machine_that_is_lost(jobs: Stage) -> None:
    with ExitStack() as stack:
        began = jobs.now()
        stack.enter_context(machine.lost(LOST))
        jobs.jobs.run("exec", "peer-0-0", "--", "touch", FAIL)
        jobs.jobs.patch("paused", suspend=True)
        jobs.jobs.patch("late", activeDeadlineSeconds=1)
        jobs.jobs.run("delete", "dtj/again")
        jobs.apply("again", OK, **placed())
        jobs.timeline.first(is_silent("apart", "True", began), SHORT_CUT_SECONDS)
        jobs.warned_once("apart", NODE_SILENT)
        over = {
            name: ends(jobs, name, reason, began, seconds)
            for name, reason, seconds in (
                ("peer", "RankFailed", NODE_LOST_SECONDS),
                ("late", "DeadlineExceeded", NODE_LOST_SECONDS),
                ("ring", "NodeLost", NODE_LOST_SECONDS),
                ("apart", "NodeLost", NODE_LOST_SECONDS),
            )
        }
        assert over["peer"].status["message"].startswith("Rank 0 on peer-0 failed with exit code 1"), over["peer"]
        assert all("Pending" not in states(seen) for seen in over.values())
        assert _terminates(jobs, "ring-1-0")
        is_suspended_and_resumed(jobs, began)
        done = jobs.timeline.first(
            lambda seen: seen.at > began and says("again", "AllRanksSucceeded", "Complete")(seen), 120.0
        )
        say(f"again: Complete {done.at - began:.1f} s after the cut, beside the pod that it was")
        assert _terminates(jobs, "again-1-0")
    # The machine returns, and no process of a lost node continues there.
    jobs.until(lambda: not jobs.jobs.children("ring", "pods") - {"pod/ring-0-0"})
    jobs.kubectl.wait("condition=Ready", f"node/{LOST}")


def ends(stage: Stage, name: str, reason: str, began: float, seconds: float) -> ObservedChange:
    left = max(1.0, began + seconds - stage.now())
    over = stage.timeline.first(says(name, reason, "Failed"), left)
    say(f"{name}: {reason} {over.at - began:.1f} s after the cut: {over.status['message']}")
    assert condition(over, "Failed")["status"] == "True"
    assert over.at - began <= seconds
    return over


def is_suspended_and_resumed(stage: Stage, began: float) -> None:
    paused = stage.timeline.first(phase("paused", "Suspended", began), NODE_LOST_SECONDS)
    say(f"paused: Suspended {paused.at - began:.1f} s after the cut")
    assert paused.at - began <= NODE_LOST_SECONDS + COMMAND_TIMEOUT_SECONDS
    resumed = stage.now()
    stage.jobs.patch("paused", suspend=False)
    runs = stage.timeline.first(phase("paused", "Running", resumed))
    say(f"paused: Running {runs.at - resumed:.1f} s after it was resumed")
    pod = stage.pod("paused", 1)
    assert pod["metadata"]["name"] == "paused-1-1"
    assert pod["spec"]["nodeName"] != LOST


def states(seen: ObservedChange) -> set[str]:
    return {entry["state"] for entry in seen.status["ranks"]["byState"]}


def _terminates(stage: Stage, name: str) -> bool:
    pod: Any = stage.jobs.run("get", "pod", name, "--output=jsonpath={.metadata.deletionTimestamp}")
    return bool(pod)
