"""The goodput of real runs: what the agents report about the ranks' steps, and what the status makes of it."""

import json
from pathlib import Path
from typing import Any

import pytest

from integration.run.muster_run import run, write_job

# Every 0.1 s a step, and a checkpoint at step 6. In the first attempt rank 1 is killed at step 10.
REPORTS_STEPS = """
import os, pathlib, signal, time
import muster_worker
attempt, rank, folder = os.environ["MUSTER_ATTEMPT"], os.environ["RANK"], pathlib.Path(os.environ["SM_OUTPUT_DIR"])
checkpoint = folder / f"checkpoint-{rank}"
step = int(checkpoint.read_text()) if checkpoint.exists() else 0
muster_worker.report(step=step)
while step < (10 if attempt == "1" else 16):
    time.sleep(0.1)
    step += 1
    muster_worker.report(step=step)
    if step == 6:
        checkpoint.write_text("6")
if attempt == "1":
    (folder / f"reached-{rank}").touch()
    while not (folder / "reached-0").exists():
        time.sleep(0.01)
    if rank == "1":
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(600)
"""


def run_script(folder: Path, text: str, max_restarts: int = 0) -> tuple[dict[str, Any], str]:
    script = folder / "train.py"
    script.write_text(text)
    policy = {"maxRestarts": max_restarts}
    ended = run(folder, write_job(folder, ["python3", str(script)], nodes=1, failurePolicy=policy), "-o", "json")
    assert ended.wait() == 0, ended.stderr
    assert ended.left() == []
    return json.loads(ended.stdout)["status"], ended.stderr


def lost(goodput: Any) -> dict[str, float]:
    return {entry["cause"]: entry["seconds"] for entry in goodput.get("lost", [])}


def test_a_failure_costs_steps_and_time(tmp_path: Path) -> None:
    status, summary = run_script(tmp_path, REPORTS_STEPS, max_restarts=1)

    (record,) = status["restarts"]["history"]
    assert (record["scriptStep"], record["stepsLost"]) == (10, 4)
    goodput = status["goodput"]
    assert (goodput["device"], goodput["step"]) == ("rank", 16)
    seconds = lost(goodput)
    assert set(seconds) == {"Start", "Failure", "Recomputation"}
    # 4 steps of 0.1 s are made again, and at least 14 of 16 others are after an attempt's first one.
    assert seconds["Recomputation"] >= 0.2
    assert goodput["productiveSeconds"] >= 1.4
    assert goodput["totalSeconds"] == pytest.approx(goodput["productiveSeconds"] + sum(seconds.values()), abs=0.01)
    assert goodput["ratio"] == pytest.approx(goodput["productiveSeconds"] / goodput["totalSeconds"], abs=0.001)
    assert "4 steps to repeat" in summary
    assert f"goodput {100 * goodput['ratio']:.1f} % of" in summary


def test_a_command_without_steps_is_productive_after_its_start(tmp_path: Path) -> None:
    status, _ = run_script(tmp_path, "import time\ntime.sleep(1)")
    assert status["goodput"]["productiveSeconds"] >= 1
    assert set(lost(status["goodput"])) <= {"Start"}
