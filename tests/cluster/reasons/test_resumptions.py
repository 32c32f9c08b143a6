"""Each failure with each launcher: the job continues from its last checkpoint, and leaves no process behind."""

from contextlib import nullcontext
from functools import partial
from pathlib import Path

import pytest

from cluster.reasons import machine
from cluster.reasons.resumption import SavingJob, check_continued, has_no_process, has_saved, start
from cluster.reasons.stage import Stage
from cluster.reasons.test_operator_away import operator_away
from cluster.reasons.test_restarts import history
from cluster.reasons.timeline import ObservedChange
from cluster.torch_volume import TorchVolume

NO_MODULE = """
import time
time.sleep(1)
import no_such_module
"""
FAILS = "import os, time; time.sleep(1); raise SystemExit(3 if os.environ['RANK'] == '1' else time.sleep(600))"


@pytest.mark.parametrize(
    ("launcher", "is_operator_killed"),
    [("direct", True), ("torchrun", False), ("mpi", False)],
    ids=["direct-operator-killed", "torchrun", "mpi"],
)
def test_a_killed_rank_a_full_memory_and_a_deleted_pod(
    stage: Stage, torch_for_pods: TorchVolume, tmp_path: Path, launcher: str, *, is_operator_killed: bool
) -> None:
    prefix = f"{launcher}{'-away' if is_operator_killed else ''}"
    killed, full, deleted = (
        start(stage, f"{prefix}-{name}", launcher, tmp_path / name, torch_for_pods)
        for name in ("killed", "full", "deleted")
    )
    for job in (killed, full, deleted):
        stage.until(partial(has_saved, stage, job))
    pod = stage.started_pod(killed.name, 1)
    with operator_away(stage) if is_operator_killed else nullcontext():
        machine.kill(machine.rank(pod, 2))
        (full.folder / "grow").touch()
        stage.jobs.run("delete", "pod", f"{deleted.name}-1-0", "--wait=false")

    assert check_continued(stage, killed, "Failure", 0) == "RankKilled"
    assert check_continued(stage, full, "Failure", 0) == "OOMKilled"
    check_continued(stage, deleted, "Disruption", 1)


def test_an_error_at_import_and_a_used_budget_end_the_job(stage: Stage, tmp_path: Path) -> None:
    wrong, spent = (
        start(stage, name, "direct", tmp_path / name, command=command)
        for name, command in (("wrong", ["python3", "-c", NO_MODULE]), ("spent", ["python3", "-c", FAILS]))
    )
    for job in (wrong, spent):
        stage.runs(job.name)
    with operator_away(stage):
        pass
    over = {job.name: stage.timeline.first(partial(_has_failed, job)).status for job in (wrong, spent)}

    status = over[wrong.name]
    assert (status["attempt"], history(status)) == (1, [])
    assert "ModuleNotFoundError: No module named 'no_such_module'" in status["message"]
    assert status["message"].endswith("not restarted: a restart would give the same error")
    status = over[spent.name]
    assert (status["attempt"], history(status)) == (3, [(number, "RankFailed", "Failure", 0) for number in (1, 2)])
    assert status["message"].endswith("not restarted: failurePolicy.maxRestarts (2) is used up")
    for job in (wrong, spent):
        has_no_process(stage, job)


def _has_failed(job: SavingJob, seen: ObservedChange) -> bool:
    return seen.kind == "Job" and seen.name == job.name and seen.status.get("phase") == "Failed"
