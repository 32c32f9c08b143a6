"""Imported jobs that need no GPU run to their end on the cluster. Only their image and their queue are changed."""

import json
from typing import Any

import pytest

from cluster.ended_job import succeeded
from cluster.held_job import JOB
from cluster.images import PULL_POLICY, PYTHON_IMAGE
from cluster.installation import Installation
from cluster.muster_command import Muster
from cluster.shared import Kubectl
from muster.importers.kubernetes.manifests import import_manifests
from muster_dev.golden_manifests import load_folder

MANIFESTS = load_folder("manifests")


def import_for(name: str, namespace: str) -> Any:
    """Return the first job of a manifest, with an image of the cluster and without a queue."""
    resource = import_manifests(MANIFESTS[name]).resources[0]
    job = json.loads(json.dumps(resource))
    job["metadata"]["namespace"] = namespace
    job["spec"].pop("queue", None)
    job["spec"]["image"] = PYTHON_IMAGE
    containers = job["spec"].setdefault("template", {}).setdefault("spec", {}).setdefault("containers", [])
    containers[:] = [{"name": "trainer", "imagePullPolicy": PULL_POLICY}]
    return job


@pytest.mark.parametrize(
    ("manifest", "ranks"), [("pytorch_simple", 2), ("job_set_replicas", 4), ("volcano_pytorch", 3), ("list", 1)]
)
def test_an_imported_job_completes(
    installed_operator: Installation, kubectl: Kubectl, manifest: str, ranks: int
) -> None:
    namespace = installed_operator.namespace
    job = import_for(manifest, namespace)
    name = job["metadata"]["name"]
    kubectl.apply(job)
    try:
        done = Muster(kubectl.kubeconfig, namespace)("wait", name)
        assert done.returncode == 0, done.stderr
        status = json.loads(kubectl("get", JOB, name, f"--namespace={namespace}", "--output=json"))["status"]
        assert (status["phase"], succeeded(status)) == ("Succeeded", f"{ranks}/{ranks}")
    finally:
        kubectl("delete", JOB, name, f"--namespace={namespace}", "--wait=false")
