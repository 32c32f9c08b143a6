"""Jobs whose ranks save when `muster_worker.stopping()` says so: all save the same step, and continue there."""

import signal
from pathlib import Path

import pytest

from cluster.reasons.stage import Stage, template
from cluster.reasons.test_disrupted_restarts import POLICY
from cluster.reasons.test_restarts import history, uids
from cluster.shared import Manifest

STEPS = 100_000
TRAIN = f"""
import os, pathlib, time
import muster_worker
rank, attempt, folder = os.environ["RANK"], os.environ["MUSTER_ATTEMPT"], pathlib.Path("/checkpoint")
first = max((int(path.read_text()) for path in folder.glob("saved-*")), default=0)
(folder / f"first-{{rank}}-{{attempt}}").write_text(str(first))
for step in range(first, {STEPS} if first == 0 else first + 5):
    time.sleep(0.01 * (1 + int(rank)))
    if step == first + 2:
        (folder / f"on-{{rank}}-{{attempt}}").touch()
    if muster_worker.stopping():
        time.sleep(1)
        (folder / f"saved-{{rank}}").write_text(str(step + 1))
        break
"""


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """Return a folder of this machine that all pods share, because both nodes are on it."""
    tmp_path.chmod(0o777)
    return tmp_path


def start(stage: Stage, name: str, checkpoint: Path, **spec: object) -> None:
    """Start a job, and wait until all ranks have made steps."""
    volume = {"name": "checkpoint", "hostPath": {"path": str(checkpoint), "type": "Directory"}}
    mounts = [{"name": "checkpoint", "mountPath": "/checkpoint"}]
    pod: Manifest = template({"volumeMounts": mounts}, volumes=[volume], terminationGracePeriodSeconds=25)
    stage.apply(name, TRAIN, **{"nodes": 2, "procsPerNode": 2, "template": pod, **spec})
    stage.until(lambda: len(list(checkpoint.glob("on-*-1"))) == 4)


def saved_steps(checkpoint: Path) -> list[str]:
    return [path.read_text() for path in sorted(checkpoint.glob("saved-*"))]


def check_continued(checkpoint: Path) -> None:
    """All ranks saved the same step in attempt 1, and began attempt 2 with it."""
    steps = saved_steps(checkpoint)
    assert len(steps) == 4
    assert len(set(steps)) == 1
    assert {path.read_text() for path in checkpoint.glob("first-*-2")} == set(steps)
    assert 0 < int(steps[0]) < STEPS


def test_a_suspended_job_goes_on_where_all_its_ranks_stopped(stage: Stage, checkpoint: Path) -> None:
    start(stage, "paused", checkpoint)
    stage.jobs.patch("paused", suspend=True)
    stage.timeline.first(lambda seen: seen.name == "paused" and seen.status.get("phase") == "Suspended")
    assert len(saved_steps(checkpoint)) == 4
    stage.jobs.patch("paused", suspend=False)
    stage.completes("paused")
    check_continued(checkpoint)
    assert stage.jobs.status("paused")["attempt"] == 2


def test_a_drained_pod_s_job_goes_on_where_all_its_ranks_stopped(stage: Stage, checkpoint: Path) -> None:
    start(stage, "left", checkpoint, failurePolicy=POLICY)
    before = uids(stage, "left")
    stage.jobs.run("delete", "pod", "left-1-0", "--wait=false")
    stage.completes("left")
    check_continued(checkpoint)
    assert [entry[2:] for entry in history(stage.jobs.status("left"))] == [("Disruption", 1)]
    assert uids(stage, "left")["left-0-0"] == before["left-0-0"]


def test_a_pod_that_is_drained_without_an_operator_saves_all_the_same(stage: Stage, checkpoint: Path) -> None:
    start(stage, "alone", checkpoint, failurePolicy=POLICY)
    stage.operator.signal(signal.SIGKILL)
    try:
        stage.jobs.run("delete", "pod", "alone-1-0", "--wait=true")
        steps = saved_steps(checkpoint)
        assert len(steps) == 2
        assert len(set(steps)) == 1
    finally:
        stage.operator.start()
    stage.completes("alone")
    assert [entry[2:] for entry in history(stage.jobs.status("alone"))] == [("Disruption", 1)]
