"""Jobs on SageMaker with a real API server, by an operator with only the chart's permissions."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cluster.ended_job import succeeded
from cluster.muster_command import Muster
from cluster.operator.cluster_jobs import Jobs
from cluster.operator.operator_process import Replicas
from cluster.shared import Manifest
from fakes.fake_credentials import FAKE_VARIABLES
from fakes.sagemaker_service.script import make_completing_script, make_stages_before_training
from fakes.sagemaker_service.server import serving
from fakes.sagemaker_service.service import Service
from muster.api.backends import TRAINING_JOB_FINALIZER
from unit.render.sagemaker.builders import ROLE

RUNNING = "jsonpath={.status.phase}=Running"
FOLLOWED_SECONDS = 120


@pytest.fixture
def service() -> Service:
    """SageMaker with the real clock; jobs stop faster than on AWS, so that kubectl doesn't time out earlier."""
    service = Service(lambda: datetime.now(UTC))
    service.get_jobs().stopping_seconds = 2.0
    return service


@pytest.fixture
def sagemaker_operators(operators: Replicas, service: Service, tmp_path: Path) -> Iterator[Replicas]:
    """Operators that connect to it, none of them started."""
    with serving(service) as url:
        endpoints = dict.fromkeys(("sagemaker", "sts", "s3", "logs"), url)
        grants = {"namespaces": ["*"], "roles": [ROLE], "buckets": [{"name": "team"}]}
        operators.config = tmp_path / "config.yaml"
        operators.config.write_text(
            json.dumps({"sagemaker": {"region": "us-west-2", "endpoints": endpoints}, "tenancy": [grants]}),
            encoding="utf-8",
        )
        operators.environment = FAKE_VARIABLES
        yield operators


def test_a_training_job_is_followed_until_it_completes_or_is_stopped_before_its_resource_goes(
    sagemaker_operators: Replicas, service: Service, jobs: Jobs, tmp_path: Path
) -> None:
    service.get_jobs().script = lambda _: make_completing_script(4.0, stage_seconds=1.0)
    sagemaker_operators.start()
    file = tmp_path / "job.yaml"
    file.write_text(json.dumps(training_job("vit")), encoding="ascii")
    muster = Muster(jobs.kubectl.kubeconfig, jobs.namespace)
    followed = muster("run", "--on", "cluster", "-f", str(file), "-o", "wide")
    assert followed.returncode == 0, followed.stderr
    assert re.search(r"^NAME +BACKEND .*\nvit +SageMaker +Succeeded ", followed.stdout), followed.stdout
    status = jobs.status("vit")
    assert (status["phase"], succeeded(status)) == ("Succeeded", "2/2")
    value = status["backend"]["sagemaker"]
    assert [one["status"] for one in value["history"]] == [
        "Starting",
        "Downloading",
        "Training",
        "Uploading",
        "Completed",
    ]
    jobs.run("delete", "dtj/vit", "--wait=true")
    assert list(service.get_jobs().by_name) == [value["trainingJobName"]]

    service.get_jobs().script = lambda _: make_stages_before_training(1.0)
    apply(jobs, "bert")
    jobs.wait("bert", RUNNING)
    assert jobs.resource("bert")["metadata"]["finalizers"] == [TRAINING_JOB_FINALIZER]
    jobs.run("delete", "dtj/bert", "--wait=true")
    _, stopped = service.get_jobs().by_name.values()
    assert stopped.state(service.now())[1].status == "Stopped"


def test_an_operator_that_follows_a_killed_one_goes_on_with_its_training_job(
    sagemaker_operators: Replicas, service: Service, jobs: Jobs
) -> None:
    service.get_jobs().script = lambda _: make_stages_before_training(1.0)
    first = sagemaker_operators.start()
    apply(jobs, "vit")
    jobs.wait("vit", "jsonpath={.status.backend.sagemaker.attempt}=1")
    first.signal(signal.SIGKILL)
    jobs.run("delete", "dtj/vit", "--wait=false")
    second = sagemaker_operators.start()
    # the Lease of the killed operator expires, a listing finds its training job, and another one its stop
    jobs.run("wait", "--for=delete", f"--timeout={FOLLOWED_SECONDS}s", "dtj/vit")
    ended = [job.state(service.now())[1].status for job in service.get_jobs().by_name.values()]
    assert ended in ([], ["Stopped"]), second.said
    assert "Traceback" not in second.said


def apply(jobs: Jobs, name: str) -> None:
    jobs.run("apply", "-f", "-", stdin=json.dumps(training_job(name)))


def training_job(name: str) -> Manifest:
    """Return a job that SageMaker's container starts by itself."""
    spec = {
        "backend": "SageMaker",
        "nodes": 2,
        "procsPerNode": 1,
        "launcher": {"perNode": {}},
        "image": "111122223333.dkr.ecr.us-west-2.amazonaws.com/train:1",
        "command": ["python", "train.py"],
        "output": {"s3": "s3://team/out"},
        "sagemaker": {"role": ROLE, "instanceType": "ml.c5.xlarge"},
    }
    kind = {"apiVersion": "muster.dev/v1alpha1", "kind": "DistributedTrainingJob"}
    return {**kind, "metadata": {"name": name}, "spec": spec}
