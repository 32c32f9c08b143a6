"""An elastic job: it loses a node, goes on with the others, grows back, and follows `kubectl scale`."""

import json
import re
from pathlib import Path

import pytest
import yaml

from cluster.places import ROOT
from cluster.reasons.elastic_job import ElasticJob, limit_pods
from cluster.reasons.stage import Stage
from cluster.reasons.test_restarts import history, uids
from cluster.shared import Manifest

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


def test_an_autoscaler_changes_the_number_of_nodes(stage: Stage, tmp_path: Path) -> None:
    job = ElasticJob(stage, "autoscaled", tmp_path / "checkpoint", nodes=2)
    job.start("direct")
    first_pods = uids(stage, job.name)
    # Below minReplicas the HPA needs no metric to decide.
    stage.jobs.run("apply", "--filename=-", stdin=json.dumps(make_autoscaler(job.name, min_replicas=3)))
    job.next_attempt()
    assert job.members == ["0-1", "0-2"]
    assert uids(stage, job.name).items() > first_pods.items()

    resource = f"/apis/muster.dev/v1alpha1/namespaces/{stage.namespace}/distributedtrainingjobs/{job.name}/scale"
    scale = json.loads(stage.kubectl("get", "--raw", resource))
    assert (scale["spec"]["replicas"], scale["status"]["replicas"]) == (3, 3)
    selected = stage.jobs.run("get", "pods", f"--selector={scale['status']['selector']}", "--output=name").split()
    assert {name.removeprefix("pod/") for name in selected} == uids(stage, job.name).keys()
    # Within its limits the HPA accepts the job's selector, and then asks for the metric, which this cluster lacks.
    stage.until(lambda: read_autoscaler(stage).get("ScalingActive") == ("False", "FailedGetExternalMetric"))
    assert read_autoscaler(stage)["AbleToScale"][0] == "True"
    stage.jobs.run("delete", "hpa/vit")


def make_autoscaler(job: str, min_replicas: int) -> Manifest:
    """Return the HPA of docs/elastic.md, for this job."""
    text = (ROOT / "docs" / "elastic.md").read_text(encoding="utf-8")
    blocks = (yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL))
    autoscaler = next(block for block in blocks if block["kind"] == "HorizontalPodAutoscaler")
    spec = autoscaler["spec"]
    return {
        **autoscaler,
        "spec": {
            **spec,
            "scaleTargetRef": {**spec["scaleTargetRef"], "name": job},
            "minReplicas": min_replicas,
            "maxReplicas": 3,
        },
    }


def read_autoscaler(stage: Stage) -> dict[str, tuple[str, str]]:
    """Return the status and the reason of each condition of the HPA."""
    path = f"/apis/autoscaling/v2/namespaces/{stage.namespace}/horizontalpodautoscalers/vit"
    status = stage.kubectl.read(path).get("status", {})
    return {entry["type"]: (entry["status"], entry["reason"]) for entry in status.get("conditions", [])}
