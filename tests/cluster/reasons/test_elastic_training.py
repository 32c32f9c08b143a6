"""A real training goes on with two of three nodes and then with all again: its loss is continuous.

`MUSTER_ALL_LAUNCHERS=1` runs it with each launcher, not only with torchrun.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cluster.digits.example_job import PREPARE
from cluster.mpi.pod_installs import PodInstall, pod_install
from cluster.reasons import machine
from cluster.reasons.elastic_job import limit_pods
from cluster.reasons.stage import Stage
from cluster.reasons.test_restarts import history, runs, uids
from cluster.reasons.watched_training import (
    WINDOW,
    WatchedTraining,
    check_images,
    check_losses,
    check_steps,
)
from cluster.say import say
from cluster.torch_volume import TorchVolume

pytestmark = [pytest.mark.timeout(600), pytest.mark.usefixtures("own_quota")]

LAUNCHERS = ("torchrun", "direct", "mpi") if os.environ.get("MUSTER_ALL_LAUNCHERS") else ("torchrun",)


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the example's images, on this machine, where the nodes see them."""
    folder = tmp_path_factory.mktemp("digits")
    subprocess.run([sys.executable, PREPARE, folder], check=True, capture_output=True)
    return folder


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_the_digits_example_loses_a_node_and_gets_it_back(
    stage: Stage, torch_for_pods: TorchVolume, images: Path, tmp_path: Path, launcher: str
) -> None:
    name = f"digits-{launcher}"
    job = WatchedTraining(stage, name, tmp_path / "shared")
    job.start(launcher, torch_for_pods, pod_install("openmpi5") if launcher == "mpi" else PodInstall("none"), images)
    members = [runs(stage, name, 1).status["members"]]
    first_pods = uids(stage, name)
    # Some steps after a snapshot, which the next attempt has to make again.
    stage.until(lambda: job.has_trained(1, WINDOW, saved=1))
    limit_pods(stage, 2)
    machine.kill_container(stage.started_pod(name, 1))
    members.append(runs(stage, name, 2).status["members"])
    stage.until(lambda: job.has_trained(2, WINDOW))
    limit_pods(stage, 3)
    members.append(runs(stage, name, 3).status["members"])
    job.hurry()
    stage.completes(name)

    assert members == ["0-2", "0,2", "0,2,1"]
    records = history(stage.jobs.status(name))
    say(f"{name}: {records}")
    assert [(entry[0], entry[1]) for entry in records[1:]] == [(2, "Resized")]
    pods = uids(stage, name)
    assert [pods[f"{name}-{node}-0"] for node in (0, 2)] == [first_pods[f"{name}-{node}-0"] for node in (0, 2)]
    attempts = [job.records(attempt) for attempt in (1, 2, 3)]
    assert [len(attempt) for attempt in attempts] == [3, 2, 3]
    # The lost node cost steps; the growth did not, because the ranks stopped with a snapshot.
    assert attempts[1][0].steps[0] < attempts[0][0].steps[-1]
    assert attempts[2][0].steps[0] == attempts[1][0].steps[-1]
    check_steps(attempts)
    check_images(attempts)
    check_losses(job.losses())
