"""An elastic job: it loses a node, goes on with the others, grows back, and follows `kubectl scale`."""

from pathlib import Path

import pytest

from cluster.reasons.elastic_job import ElasticJob, limit_pods
from cluster.reasons.stage import Stage
from cluster.reasons.test_restarts import history, uids

pytestmark = [pytest.mark.timeout(300), pytest.mark.usefixtures("own_quota")]


def check_loss_and_growth(job: ElasticJob, launcher: str) -> dict[str, str]:
    """The job goes on with two of its three nodes, and then with a new pod for the third. Return its first pods."""
    stage, name = job.stage, job.name
    job.start(launcher)
    first_pods = uids(stage, name)
    # No room for another pod, so that the loss is not made good.
    limit_pods(stage, 2)
    stage.jobs.run("delete", "pod", f"{name}-1-0", "--wait=false")
    job.next_attempt()
    limit_pods(stage, 3)
    job.next_attempt()
    check_survivors(job, first_pods)
    return first_pods


def check_survivors(job: ElasticJob, first_pods: dict[str, str]) -> None:
    pods = uids(job.stage, job.name)
    names = [f"{job.name}-{node}-0" for node in (0, 2)]
    assert [pods[name] for name in names] == [first_pods[name] for name in names]


def test_a_job_shrinks_grows_and_is_scaled(stage: Stage, tmp_path: Path) -> None:
    job = ElasticJob(stage, "elastic", tmp_path / "checkpoint")
    first_pods = check_loss_and_growth(job, "direct")
    stage.jobs.run("scale", "dtj/elastic", "--replicas=2")
    job.next_attempt()
    stage.until(lambda: len(uids(stage, "elastic")) == 2)
    stage.jobs.run("scale", "dtj/elastic", "--replicas=3")
    job.next_attempt()

    assert job.members == ["0-2", "0,2", "0,2,1", "0,2", "0,2,1"]
    status = stage.jobs.status("elastic")
    assert [entry[1] for entry in history(status)[1:]] == ["Resized"] * 3
    assert (status["restarts"]["total"], status["restarts"]["disruptions"]) == (4, 1)
    check_survivors(job, first_pods)
    selector = status["elastic"]["selector"]
    assert len(stage.jobs.run("get", "pods", f"--selector={selector}", "--output=name").split()) == 3
    with pytest.raises(AssertionError, match="nodes must be at least"):
        stage.jobs.run("scale", "dtj/elastic", "--replicas=4")


def test_an_mpi_job_shrinks_and_grows(stage: Stage, tmp_path: Path) -> None:
    job = ElasticJob(stage, "elastic-mpi", tmp_path / "checkpoint")
    check_loss_and_growth(job, "mpi")
    assert job.members == ["0-2", "0,2", "0,2,1"]
    assert [entry[1] for entry in history(stage.jobs.status("elastic-mpi"))[1:]] == ["Resized"]
