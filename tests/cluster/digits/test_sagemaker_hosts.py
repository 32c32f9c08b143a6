"""An unchanged script written for SageMaker, with one process per node that finds its hosts itself."""

import json

from cluster.digits.example_job import Surroundings, example_job, put_code
from cluster.ended_job import succeeded
from cluster.installation import Installation
from cluster.muster_command import Muster

EXAMPLE = "sagemaker_hosts"
JOB = "dtj/sagemaker-hosts"
TRAINING_SECONDS = 240


def test_it_finds_its_hosts_and_completes(installed_operator: Installation, surroundings: Surroundings) -> None:
    kubectl, namespace = installed_operator.kubectl, installed_operator.namespace
    inside = f"--namespace={namespace}"
    code = put_code(kubectl, namespace, EXAMPLE)
    job = example_job(EXAMPLE, surroundings)
    job["spec"]["hyperparameters"]["epochs"] = 1
    try:
        kubectl("apply", "-f", "-", inside, stdin=json.dumps(job))
        done = Muster(kubectl.kubeconfig, namespace)("wait", "sagemaker-hosts", "--timeout", str(TRAINING_SECONDS))
        assert done.returncode == 0, done.stderr
        status = json.loads(kubectl("get", JOB, inside, "--output=json"))["status"]
        assert succeeded(status) == "2/2"
        assert "loss" in status["progress"]["metrics"]
    finally:
        kubectl("delete", JOB, inside, "--ignore-not-found")
        kubectl("delete", "configmap", code, inside)
