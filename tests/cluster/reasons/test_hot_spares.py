"""A machine is lost: a hot spare takes its place, beside a job that has to wait for a new pod."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cluster.operator.cluster_jobs import FOREVER
from cluster.reasons import machine
from cluster.reasons.stage import A_SHARE, NOTHING, Stage, template
from cluster.reasons.test_disrupted_restarts import is_in_phase
from cluster.reasons.test_lost_node import LOST, NODE_LOST_SECONDS, placed
from cluster.reasons.test_restarts import history, runs, uids
from cluster.reasons.timeline import ObservedChange, Predicate
from cluster.say import say
from cluster.shared import Manifest
from cluster.torch_volume import TorchVolume

# Other tests' pods on the lost machine would not start meanwhile.
pytestmark = [pytest.mark.alone, pytest.mark.timeout(300)]

CODE = "/code"
SHAPE: dict[str, object] = {
    "nodes": 2,
    "procsPerNode": 1,
    "resources": A_SHARE,
    "launcher": {"torchrun": {}},
    "command": ["python3", f"{CODE}/train.py"],
    "failurePolicy": {"maxDisruptions": 3},
}
STARTED_SECONDS = 25.0
"""The limit from the decision that the node is lost to the start of all ranks of the next attempt. An idle
machine takes 1 to 3 s.
"""

NEW_POD_SECONDS = 90.0
"""The limit without a spare: a pod has to start and to import torch."""

TRAINS = f"""
import os, torch
print("rank", os.environ["RANK"], "of attempt", os.environ["MUSTER_ATTEMPT"], flush=True)
{FOREVER}
"""


def apart(name: str) -> Manifest:
    """Node 1 is alone on its machine: all pods of a job with spares have one template."""
    labels = {"muster.dev/job": name, "muster.dev/node": "1"}
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": "kubernetes.io/hostname"}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


@contextmanager
def one_machine_only(stage: Stage, name: str) -> Iterator[None]:
    """Let the pods of the block go to one machine until it has either node 1 or the two others.

    On two machines, nodes 0 and 2 could go to different ones, which leaves none for node 1.
    """
    stage.kubectl("cordon", LOST)
    try:
        yield
        stage.until(lambda: nodes_with_machine(stage, name) in ({"1"}, {"0", "2"}))
    finally:
        stage.kubectl("uncordon", LOST)


def nodes_with_machine(stage: Stage, name: str) -> set[str]:
    """Return the nodes of a job whose pods have been scheduled."""
    listed = json.loads(stage.jobs.run("get", "pods", f"--selector=muster.dev/job={name}", "--output=json"))["items"]
    return {pod["metadata"]["labels"]["muster.dev/node"] for pod in listed if pod["spec"].get("nodeName")}


def spares_are_ready(name: str, count: int) -> Predicate:
    return lambda seen: seen.kind == "Job" and seen.name == name and seen.status.get("spares", {}).get("ready") == count


def events(stage: Stage, name: str, reason: str) -> list[str]:
    value = stage.timeline.all(lambda seen: seen.kind == "Event" and seen.name == name and seen.type == "ADDED")
    return [seen.object["message"] for seen in value if seen.object["reason"] == reason]


def test_a_spare_takes_a_lost_node_s_place(stage: Stage, torch_for_pods: TorchVolume, tmp_path: Path) -> None:
    with one_machine_only(stage, "spared"):
        pods = with_torch(torch_for_pods, tmp_path, apart("spared"))
        stage.apply("spared", TRAINS, **{**SHAPE, "spares": 1, "template": pods})
    runs(stage, "spared", 1)
    stage.timeline.first(spares_are_ready("spared", 1))
    lost = stage.started_pod("spared", 1)["spec"]["nodeName"]
    assert stage.started_pod("spared", 2)["spec"]["nodeName"] != lost
    before = uids(stage, "spared")
    with machine.lost(lost):
        assert seconds_to_restart(stage, "spared") < STARTED_SECONDS
        after = runs(stage, "spared", 2)
        assert after.status["members"] == "0,2"
        assert history(after.status) == [(1, "NodeLost", "Disruption", 1)]
        assert "rank 1 of attempt 2" in stage.jobs.log("spared-2-0")
        left = uids(stage, "spared")
        assert all(left[name] == before[name] for name in ("spared-0-0", "spared-2-0"))
        stage.until(lambda: "spared-1-1" in uids(stage, "spared"))
        stage.until(
            lambda: (
                events(stage, "spared", "SpareUsed")
                == ["A spare takes the place of a node in attempt 2: node 2 for node 1"]
            )
        )
    healed_at = stage.now()
    stage.kubectl.wait("condition=Ready", f"node/{lost}")
    is_ready = spares_are_ready("spared", 1)
    ready = stage.timeline.first(lambda seen: seen.at > healed_at and is_ready(seen))
    assert (ready.status["phase"], ready.status["attempt"], ready.status["members"]) == ("Running", 2, "0,2")


def test_the_same_without_a_spare(stage: Stage, torch_for_pods: TorchVolume, tmp_path: Path) -> None:
    """The image is on the machine, and there is no data: a new pod is as fast as it gets."""
    stage.apply("unspared", TRAINS, **placed(**{**SHAPE, "template": with_torch(torch_for_pods, tmp_path)}))
    runs(stage, "unspared", 1)
    assert stage.started_pod("unspared", 1)["spec"]["nodeName"] == LOST
    with machine.lost(LOST):
        assert seconds_to_restart(stage, "unspared") < NEW_POD_SECONDS
    stage.kubectl.wait("condition=Ready", f"node/{LOST}")


def with_torch(volume: TorchVolume, folder: Path, affinity: Manifest = NOTHING) -> Manifest:
    """Return a template whose ranks run a file, which a fork server can read: it imports torch before the start."""
    (folder / "train.py").write_text(TRAINS, encoding="ascii")
    mounts = [*volume.mounts, {"name": "code", "mountPath": CODE, "readOnly": True}]
    volumes = [*volume.volumes, {"name": "code", "hostPath": {"path": str(folder)}}]
    return template({"volumeMounts": mounts, "env": list(volume.env)}, volumes=volumes, affinity=affinity)


def seconds_to_restart(stage: Stage, name: str) -> float:
    """Return the seconds from the decision that the node is lost until all ranks of the next attempt run."""

    def is_decided(seen: ObservedChange) -> bool:
        return is_in_phase(seen, name, "Stopping") and "is lost" in seen.status["message"]

    decided = stage.timeline.first(is_decided, NODE_LOST_SECONDS + 20.0)
    after = stage.timeline.first(lambda seen: seen.at > decided.at and _all_run(seen, name), NEW_POD_SECONDS)
    changes = stage.timeline.all(lambda seen: seen.kind == "Job" and seen.name == name and seen.at >= decided.at)
    phases = {f"{seen.status['phase']} {seen.status['ranks']['ready']}": seen.at - decided.at for seen in changes}
    say(f"{name}: after the decision {', '.join(f'{phase} until {at:.1f} s' for phase, at in phases.items())}")
    return round(after.at - decided.at, 2)


def _all_run(seen: ObservedChange, name: str) -> bool:
    if seen.kind != "Job" or seen.name != name or seen.status.get("attempt") != 2:
        return False
    return bool(seen.status["ranks"]["running"] == seen.status["ranks"]["world"])
