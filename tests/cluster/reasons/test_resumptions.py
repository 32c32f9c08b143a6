"""Each failure with each launcher: the job continues from its last checkpoint, and leaves no process behind."""

from contextlib import nullcontext
from functools import partial
from pathlib import Path

import pytest

from cluster.reasons import machine
from cluster.reasons.resumption import check_continued, has_saved, start
from cluster.reasons.stage import Stage
from cluster.reasons.test_operator_away import operator_away
from cluster.torch_volume import TorchVolume


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
