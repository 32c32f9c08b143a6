"""`muster run` of scripts that save a checkpoint when `muster_worker.stopping()` says so, and continue from it."""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from integration.run.muster_run import Started, start, write_job
from integration.run.test_run_mpi import environment

STEPS = 1000
TRAIN = f"""
import os, pathlib, sys, time
import muster_worker
rank = int(os.environ.get("RANK") or os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ["PMI_RANK"])
attempt, folder = os.environ["MUSTER_ATTEMPT"], pathlib.Path(os.environ["MUSTER_CHECKPOINT_DIR"])
output = pathlib.Path(os.environ["SM_OUTPUT_DIR"])
steps = [int(path.read_text()) for path in folder.glob("saved-*")]
first = max(steps, default=0)
(output / f"first-{{rank}}-{{attempt}}").write_text(str(first))
for step in range(first, {STEPS} if first == 0 else first + 5):
    time.sleep(0.005 * (1 + rank))
    if step == first + 2:
        (output / f"on-{{rank}}-{{attempt}}").touch()
    if muster_worker.stopping():
        (folder / f"saved-{{rank}}").write_text(str(step + 1))
        break
"""


def start_job(folder: Path, launcher: str, policy: dict[str, int] | None = None) -> Started:
    script = folder / "train.py"
    script.write_text(TRAIN)
    job = write_job(folder, ["python", str(script)], launcher={launcher: {}}, failurePolicy=policy)
    # The ranks' Python is the one with torch.
    own = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    started = start(folder, job, "-o", "json", env=environment("openmpi5") if launcher == "mpi" else own)
    started.await_files("on-*-1", 4)
    return started


def saved_steps(started: Started) -> set[str]:
    return {(started.folder / "checkpoints" / f"saved-{rank}").read_text() for rank in range(4)}


def status_of(started: Started) -> dict[str, Any]:
    assert started.left() == []
    status: dict[str, Any] = json.loads(started.stdout)["status"]
    return status


@pytest.mark.parametrize("launcher", ["direct", "mpi", pytest.param("torchrun", marks=pytest.mark.long)])
def test_ctrl_c_saves_the_same_step_on_all_ranks(tmp_path: Path, launcher: str) -> None:
    started = start_job(tmp_path, launcher)
    started.process.send_signal(signal.SIGINT)
    assert started.wait() != 0
    status = status_of(started)
    assert status["phase"] == "Failed"
    (step,) = saved_steps(started)
    assert 0 < int(step) < STEPS


def test_a_drained_node_is_followed_by_an_attempt_from_the_same_step(tmp_path: Path) -> None:
    started = start_job(tmp_path, "direct", policy={})
    os.kill(min(started.agents()), signal.SIGTERM)  # the guardian of node 0's agent
    assert started.wait() == 0
    status = status_of(started)
    (record,) = status["restarts"]["history"]
    assert (status["phase"], status["attempt"]) == ("Succeeded", 2)
    assert (record["reason"], record["countsAs"], record["replacedPods"]) == ("NodeStopped", "Disruption", 1)
    (step,) = saved_steps(started)
    firsts = {(started.folder / "output" / f"first-{rank}-2").read_text() for rank in range(4)}
    assert firsts == {step}
