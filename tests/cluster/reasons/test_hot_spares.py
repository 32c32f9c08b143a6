"""A machine is lost: a hot spare takes its place, beside a job that has to wait for a new pod."""

from pathlib import Path

import pytest

from cluster.operator.cluster_jobs import FOREVER
from cluster.reasons import machine
from cluster.reasons.stage import A_SHARE, Stage, template
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

MAX_STARTS = 5
SPARE = 2

NEW_POD_SECONDS = 90.0
"""The limit without a spare: a pod has to start and to import torch."""

TRAINS = f"""
import os, torch
print("rank", os.environ["RANK"], "of attempt", os.environ["MUSTER_ATTEMPT"], flush=True)
{FOREVER}
"""


def start_apart(stage: Stage, pods: Manifest) -> tuple[str, int]:
    """Start a job with a spare of which one node has a machine of its own. Return the job's name, and that node.

    The scheduler only prefers to spread the three pods over the two machines, so that the spare may be the one alone.
    """
    for number in range(MAX_STARTS):
        name = f"spared-{number}"
        stage.apply(name, TRAINS, **{**SHAPE, "spares": 1, "template": pods})
        members = runs(stage, name, 1).status["members"]
        stage.timeline.first(spares_are_ready(name, 1))
        machines = [stage.started_pod(name, node)["spec"]["nodeName"] for node in range(3)]
        alone = next(node for node in range(3) if machines.count(machines[node]) == 1)
        if alone != SPARE and members == "0-1":
            return name, alone
        stage.jobs.run("delete", f"dtj/{name}")
    raise AssertionError(f"the spare was alone on its machine {MAX_STARTS} times")


def spares_are_ready(name: str, count: int) -> Predicate:
    return lambda seen: seen.kind == "Job" and seen.name == name and seen.status.get("spares", {}).get("ready") == count


def events(stage: Stage, name: str, reason: str) -> list[str]:
    value = stage.timeline.all(lambda seen: seen.kind == "Event" and seen.name == name and seen.type == "ADDED")
    return [seen.object["message"] for seen in value if seen.object["reason"] == reason]


def test_a_spare_takes_a_lost_node_s_place(stage: Stage, torch_for_pods: TorchVolume, tmp_path: Path) -> None:
    name, lost_node = start_apart(stage, with_torch(torch_for_pods, tmp_path))
    kept_node = 1 - lost_node
    members = f"{SPARE},1" if lost_node == 0 else f"0,{SPARE}"
    lost = stage.started_pod(name, lost_node)["spec"]["nodeName"]
    before = uids(stage, name)
    with machine.lost(lost):
        assert seconds_to_restart(stage, name) < STARTED_SECONDS
        after = runs(stage, name, 2)
        assert after.status["members"] == members
        assert history(after.status) == [(1, "NodeLost", "Disruption", 1)]
        assert f"rank {lost_node} of attempt 2" in stage.jobs.log(f"{name}-{SPARE}-0")
        left = uids(stage, name)
        assert all(left[pod] == before[pod] for pod in (f"{name}-{kept_node}-0", f"{name}-{SPARE}-0"))
        stage.until(lambda: f"{name}-{lost_node}-1" in uids(stage, name))
        used = [f"A spare takes the place of a node in attempt 2: node {SPARE} for node {lost_node}"]
        stage.until(lambda: events(stage, name, "SpareUsed") == used)
    stage.kubectl.wait("condition=Ready", f"node/{lost}")
    is_ready = spares_are_ready(name, 1)
    ready = stage.timeline.first(lambda seen: seen.at > after.at and is_ready(seen))
    assert (ready.status["phase"], ready.status["attempt"], ready.status["members"]) == ("Running", 2, members)


@pytest.mark.long
def test_the_same_without_a_spare(stage: Stage, torch_for_pods: TorchVolume, tmp_path: Path) -> None:
    """The image is on the machine, and there is no data: a new pod is as fast as it gets."""
    stage.apply("unspared", TRAINS, **placed(**{**SHAPE, "template": with_torch(torch_for_pods, tmp_path)}))
    runs(stage, "unspared", 1)
    assert stage.started_pod("unspared", 1)["spec"]["nodeName"] == LOST
    with machine.lost(LOST):
        assert seconds_to_restart(stage, "unspared") < NEW_POD_SECONDS
    stage.kubectl.wait("condition=Ready", f"node/{LOST}")


def with_torch(volume: TorchVolume, folder: Path) -> Manifest:
    """Return a template whose ranks run a file, which a fork server can read: it imports torch before the start."""
    (folder / "train.py").write_text(TRAINS, encoding="ascii")
    mounts = [*volume.mounts, {"name": "code", "mountPath": CODE, "readOnly": True}]
    volumes = [*volume.volumes, {"name": "code", "hostPath": {"path": str(folder)}}]
    return template({"volumeMounts": mounts, "env": list(volume.env)}, volumes=volumes)


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
