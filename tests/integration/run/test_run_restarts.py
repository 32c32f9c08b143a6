"""`muster run` of jobs that fail and are restarted in place: by every launcher, from the checkpoint."""

import json
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from integration.run.muster_run import OUT, await_true, run, sh, start, write_job
from integration.run.test_run_mpi import environment
from support.sudden_kill import kill_at_once

POLICY = {"maxRestarts": 3}

TRAIN = """
import os, pathlib, signal, sys, time
rank = int(os.environ.get("RANK") or os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ["PMI_RANK"])
attempt, folder = os.environ["MUSTER_ATTEMPT"], pathlib.Path(os.environ["SM_OUTPUT_DIR"])
checkpoint = folder / "checkpoint"
step = int(checkpoint.read_text()) if checkpoint.exists() else 0
(folder / f"rank-{rank}-{attempt}").write_text(str(step))
if rank == 0 and step == 0:
    (folder / "new").write_text("5")
    (folder / "new").rename(checkpoint)
if rank == 3 and attempt != "3":
    while not checkpoint.exists() or len(list(folder.glob(f"rank-*-{attempt}"))) < 4:
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGKILL)
if attempt != "3":
    time.sleep(600)
"""


def result_of(folder: Path, job: Path, env: Mapping[str, str] | None = None) -> tuple[int, dict[str, Any], Path]:
    ended = run(folder, job, "-o", "json", env=env)
    assert ended.left() == []
    status: dict[str, Any] = json.loads(ended.stdout)["status"]
    return ended.wait(), status, ended.folder


# Each node's torchrun imports torch, three times.
@pytest.mark.parametrize("launcher", ["direct", pytest.param("torchrun", marks=pytest.mark.long), "mpi"])
def test_the_ranks_start_again_in_the_same_agents_from_their_checkpoint(tmp_path: Path, launcher: str) -> None:
    script = tmp_path / "train.py"
    script.write_text(TRAIN)
    job = write_job(tmp_path, ["python", str(script)], launcher={launcher: {}}, failurePolicy=POLICY)

    # The ranks' Python is the one with torch.
    own = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    code, status, folder = result_of(tmp_path, job, environment("openmpi5") if launcher == "mpi" else own)

    assert (code, status["phase"], status["attempt"]) == (0, "Succeeded", 3)
    history = status["restarts"]["history"]
    assert [(entry["attempt"], entry["rank"], entry["reason"], entry["replacedPods"]) for entry in history] == [
        (1, 3, "RankKilled", 0),
        (2, 3, "RankKilled", 0),
    ]
    assert all(entry["secondsLost"] is not None for entry in history)
    steps = {path.name: path.read_text() for path in (folder / "output").glob("rank-*")}
    assert set(steps) == {f"rank-{rank}-{attempt}" for rank in range(4) for attempt in (1, 2, 3)}
    assert {steps[f"rank-{rank}-3"] for rank in range(4)} == {"5"}


@pytest.mark.parametrize(("launcher", "nodes"), [("direct", 1), ("mpi", 2)])
def test_an_agent_that_is_killed_is_replaced(tmp_path: Path, launcher: str, nodes: int) -> None:
    command = sh(
        f'touch {OUT}/${{RANK:-$OMPI_COMM_WORLD_RANK}}-$MUSTER_ATTEMPT; [ "$MUSTER_ATTEMPT" = 2 ] || sleep 600'
    )
    job = write_job(tmp_path, command, nodes=nodes, launcher={launcher: {}}, failurePolicy=POLICY)
    started = start(tmp_path, job, "-o", "json", env=environment("openmpi5") if launcher == "mpi" else None)
    started.await_files("*-1", 2 * nodes)
    agents = started.agents()
    # Stopped first, the agent can't report the SIGTERM that it gets when its guardian ends.
    kill_at_once(agents)
    assert started.wait() == 0
    status = json.loads(started.stdout)["status"]
    (record,) = status["restarts"]["history"]
    assert (status["attempt"], record["reason"], record["replacedPods"]) == (2, "AgentLost", nodes)
    assert started.left() == []


def test_an_error_before_the_first_step_is_not_restarted(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import tranformers\n")
    job = write_job(tmp_path, ["python", str(script)], failurePolicy=POLICY)
    code, status, _ = result_of(tmp_path, job)
    assert (code != 0, status["phase"], status["attempt"]) == (True, "Failed", 1)
    assert status["message"].endswith("not restarted: a restart would give the same error")


def test_a_stop_between_two_attempts_ends_the_job(tmp_path: Path) -> None:
    rules = [{"action": "Restart", "exitCodes": [3]}]
    job = write_job(tmp_path, sh("exit 3"), nodes=1, failurePolicy={"maxRestarts": 1000, "rules": rules})
    started = start(tmp_path, job, "-o", "json")
    await_true(lambda: "(restart 3 of 1000)" in started.stderr, 60, lambda: started.stderr)
    started.process.send_signal(signal.SIGINT)
    assert started.wait() != 0
    assert json.loads(started.stdout)["status"]["phase"] == "Failed"
    assert started.left() == []
