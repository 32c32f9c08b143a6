"""`muster run` of jobs whose ranks hang: muster restarts them, or says which rank hangs and what the others wait in."""

import json
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from integration.run.muster_run import Started, end, run, start, write_job
from integration.run.test_run_mpi import environment

TIMEOUT = 5

TRAIN = """
import os, pathlib, signal, time
import muster_worker
rank = int(os.environ.get("RANK") or os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ["PMI_RANK"])
attempt, folder = os.environ["MUSTER_ATTEMPT"], pathlib.Path(os.environ["SM_OUTPUT_DIR"])

def barrier(step):
    (folder / f"{attempt}-{step}-{rank}").touch()
    while len(list(folder.glob(f"{attempt}-{step}-*"))) < 4: time.sleep(0.01)  # each stack shows this line

for step in range(1, 8):
    if (rank, step, attempt) == (3, 4, "1"):
        os.kill(os.getpid(), signal.SIGSTOP)
    barrier(step)
    muster_worker.report(step=step)
"""


def hanging_job(folder: Path, launcher: str = "direct", **policy: object) -> Path:
    script = folder / "train.py"
    script.write_text(TRAIN)
    policy = {"hangTimeoutSeconds": TIMEOUT, **policy}
    return write_job(folder, ["python", str(script)], launcher={launcher: {}}, failurePolicy=policy)


EVALUATE = f"""
import os, time
import muster_worker
rank = int(os.environ["RANK"])
muster_worker.report(step=1)
# Rank 0 evaluates for longer than the timeout, and the others wait for it.
if rank == 0:
    with muster_worker.phase("eval"):
        time.sleep({TIMEOUT + 4})
else:
    time.sleep({TIMEOUT + 5})
muster_worker.report(step=2)
"""


@dataclass(frozen=True)
class Runs:
    """Runs that wait for their timeouts side by side."""

    with_a_restart: Started
    without_restarts: Started
    with_a_phase: Started


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    folders = [tmp_path_factory.mktemp(name) for name in ("restarts", "fails", "evaluates")]
    script = folders[2] / "evaluate.py"
    script.write_text(EVALUATE)
    jobs = (
        hanging_job(folders[0], maxRestarts=1),
        hanging_job(folders[1]),
        write_job(folders[2], ["python", str(script)], failurePolicy={"hangTimeoutSeconds": TIMEOUT}),
    )
    started = Runs(*(start(folder, job, "-o", "json") for folder, job in zip(folders, jobs, strict=True)))
    yield started
    end([started.with_a_restart, started.without_restarts, started.with_a_phase])


def wait_for(started: Started) -> tuple[int, dict[str, Any]]:
    """Wait for the end of a run, which leaves no process; return its exit code and its status."""
    code = started.wait()
    assert started.left() == []
    status: dict[str, Any] = json.loads(started.stdout)["status"]
    return code, status


def test_a_frozen_rank_is_restarted_and_the_job_completes(runs: Runs) -> None:
    check_restart(runs.with_a_restart)


# `make test` tries a restart with mpirun in test_run_restarts.py.
@pytest.mark.long
def test_a_frozen_rank_of_mpirun_is_restarted_and_the_job_completes(tmp_path: Path) -> None:
    job = hanging_job(tmp_path, "mpi", maxRestarts=1)
    check_restart(start(tmp_path, job, "-o", "json", env=environment("openmpi5")))


def check_restart(ended: Started) -> None:
    code, status = wait_for(ended)
    assert (code, status["phase"], status["attempt"]) == (0, "Succeeded", 2)
    (record,) = status["restarts"]["history"]
    assert (record["reason"], record["rank"], record["node"], record["step"]) == ("Hung", 3, 1, 3)
    assert "and was stopped by a signal; 3 others were at train.py:9 in barrier" in record["message"]
    # The stacks are in the log before muster stops the ranks.
    output = "".join(path.read_text() for path in (ended.folder / "logs").rglob("*") if path.is_file())
    assert re.search(r"\[muster\] rank 0 \| +File .*train.py.*, line 9 in barrier", output), output
    assert "[muster] rank 3 | no stack: the process does not answer" in output


def test_a_hang_without_restarts_fails_the_job(runs: Runs) -> None:
    code, status = wait_for(runs.without_restarts)
    assert (code != 0, status["phase"]) == (True, "Failed")
    assert {entry["reason"] for entry in status["conditions"] if entry["type"] == "Failed"} == {"Hung"}
    assert f"hung at step 3: it completed no step for {TIMEOUT} s" in status["message"]


def test_a_phase_is_no_hang(runs: Runs) -> None:
    code, status = wait_for(runs.with_a_phase)
    assert (code, status["phase"]) == (0, "Succeeded"), runs.with_a_phase.stderr


MISMATCH = """
import os
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
rank, value = dist.get_rank(), torch.ones(1)
optimizer = torch.optim.SGD([torch.nn.Parameter(value.clone())], 0.1)
for step in range(1, 8):
    if (rank, step, os.environ["MUSTER_ATTEMPT"]) == (1, 4, "1"):
        dist.broadcast(value, 0)
    dist.all_reduce(value)
    optimizer.step()
dist.destroy_process_group()
"""


@pytest.mark.long
@pytest.mark.parametrize("launcher", ["direct", "torchrun"])
def test_the_rank_that_has_not_entered_a_collective_is_named(tmp_path: Path, launcher: str) -> None:
    script = tmp_path / "train.py"
    script.write_text(MISMATCH)
    policy = {"hangTimeoutSeconds": 4 * TIMEOUT, "maxRestarts": 1}
    ended = run(
        tmp_path,
        write_job(tmp_path, [sys.executable, str(script)], launcher={launcher: {}}, failurePolicy=policy),
        *("-o", "json"),
        env={**os.environ, "TORCH_FR_BUFFER_SIZE": "100"},
    )
    status: dict[str, Any] = json.loads(ended.stdout)["status"]

    assert (ended.wait(), status["phase"], status["attempt"]) == (0, "Succeeded", 2), status["message"]
    (record,) = status["restarts"]["history"]
    assert (record["reason"], record["rank"], record["step"]) == ("Hung", 1, 3)
    assert "all_reduce 4 of process group 0 (default_pg), but 3 other ranks had" in record["message"]
    assert "its last collective was broadcast 4 of process group 0 (default_pg)" in record["message"]
    output = "".join(path.read_text() for path in (ended.folder / "logs").rglob("*") if path.is_file())
    assert "(broadcast); last collective: broadcast 4 of process group 0 (default_pg), not completed" in output
    assert ended.left() == []
