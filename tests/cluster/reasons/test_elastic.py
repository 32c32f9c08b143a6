"""An elastic job: it loses a node, goes on with the others, grows back, and follows `kubectl scale`."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.reasons.stage import A_SHARE, Stage, template
from cluster.reasons.test_restarts import history, runs, uids
from cluster.say import say
from cluster.shared import Manifest

pytestmark = pytest.mark.timeout(300)

# Rank 0 saves each step, once all ranks have read the last one. All write with which step and world they begin.
TRAINS = """
import os, pathlib, time
import muster_worker
rank, world, attempt = (os.environ[name] for name in ("RANK", "WORLD_SIZE", "MUSTER_ATTEMPT"))
folder = pathlib.Path("/checkpoint")
saved = folder / "saved"
first = int(saved.read_text()) if saved.exists() else 0
(folder / f"new-{rank}").write_text(str(first))
(folder / f"new-{rank}").rename(folder / f"first-{attempt}-{rank}-of-{world}")
while len(list(folder.glob(f"first-{attempt}-*"))) < int(world):
    time.sleep(0.05)
for step in range(first + 1, 100_000):
    time.sleep(0.05)
    muster_worker.report(step=step)
    if rank == "0":
        (folder / "new").write_text(str(step))
        (folder / "new").rename(saved)
"""


def limit_pods(stage: Stage, count: int) -> None:
    """Allow this number of pods of jobs, beside those that other tests have created themselves."""
    others = stage.jobs.run("get", "pods", "--selector=!muster.dev/job", "--output=name").split()
    quota: Manifest = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "pods"},
        "spec": {"hard": {"pods": count + len(others)}},
    }
    stage.jobs.run("apply", "--filename=-", stdin=json.dumps(quota))


def first_steps(folder: Path, attempt: int) -> dict[str, int]:
    """Return the steps with which the ranks of an attempt began, by `rank-of-world`."""
    files = folder.glob(f"first-{attempt}-*")
    return {path.name.removeprefix(f"first-{attempt}-"): int(path.read_text()) for path in files}


@pytest.fixture
def own_quota(stage: Stage) -> Iterator[None]:
    """Remove the jobs of earlier tests, whose pods would count, and afterwards the quota."""
    stage.jobs.run("delete", "dtj", "--all")
    stage.until(lambda: not stage.jobs.run("get", "pods", "--selector=muster.dev/job", "--output=name").strip())
    yield
    stage.jobs.run("delete", "resourcequota", "pods", "--ignore-not-found")


@pytest.mark.usefixtures("own_quota")
def test_a_job_shrinks_grows_and_is_scaled(stage: Stage, tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    folder.chmod(0o777)
    volumes: list[Manifest] = [{"name": "checkpoint", "hostPath": {"path": str(folder), "type": "Directory"}}]
    mounts: list[Manifest] = [{"name": "checkpoint", "mountPath": "/checkpoint"}]
    stage.apply(
        "elastic",
        TRAINS,
        nodes=3,
        procsPerNode=1,
        resources=A_SHARE,
        elastic={"minNodes": 1, "maxNodes": 3, "resizeAfterSeconds": 5, "growAfterSeconds": 5},
        failurePolicy={"maxDisruptions": 3},
        template=template({"volumeMounts": mounts}, volumes=volumes),
    )
    members, kept = [runs(stage, "elastic", 1).status["members"]], uids(stage, "elastic")
    stage.until((folder / "saved").exists)

    def next_attempt(attempt: int) -> None:
        before = int((folder / "saved").read_text())
        status = runs(stage, "elastic", attempt).status
        members.append(status["members"])
        say(f"elastic: {status['message']}")
        count = status["ranks"]["world"]
        # A rank runs before its script has written its file.
        stage.until(lambda: len(first_steps(folder, attempt)) >= count)
        begun = first_steps(folder, attempt)
        assert begun.keys() == {f"{rank}-of-{count}" for rank in range(count)}
        assert min(begun.values()) == max(begun.values()) >= before

    # No room for another pod, so that the loss is not made good.
    limit_pods(stage, 2)
    stage.jobs.run("delete", "pod", "elastic-1-0", "--wait=false")
    next_attempt(2)
    after = uids(stage, "elastic")
    assert all(after[name] == kept[name] for name in ("elastic-0-0", "elastic-2-0"))
    limit_pods(stage, 3)
    next_attempt(3)
    stage.jobs.run("scale", "dtj/elastic", "--replicas=2")
    next_attempt(4)
    stage.until(lambda: len(uids(stage, "elastic")) == 2)
    stage.jobs.run("scale", "dtj/elastic", "--replicas=3")
    next_attempt(5)

    assert members == ["0-2", "0,2", "0,2,1", "0,2", "0,2,1"]
    status = stage.jobs.status("elastic")
    assert [entry[1] for entry in history(status)[1:]] == ["Resized"] * 3
    assert (status["restarts"]["total"], status["restarts"]["disruptions"]) == (4, 1)
    after = uids(stage, "elastic")
    assert all(after[name] == kept[name] for name in ("elastic-0-0", "elastic-2-0"))
    selector = status["elastic"]["selector"]
    assert len(stage.jobs.run("get", "pods", f"--selector={selector}", "--output=name").split()) == 3
    with pytest.raises(AssertionError, match="nodes must be at least"):
        stage.jobs.run("scale", "dtj/elastic", "--replicas=4")
