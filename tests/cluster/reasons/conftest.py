"""One operator and one namespace for all failures of a job, watched from the beginning."""

import json
import uuid
from collections.abc import Iterator

import pytest

from cluster.helm import Helm
from cluster.operator.operator_process import account, replicas
from cluster.reasons.machine import INTERRUPTION
from cluster.reasons.stage import Stage
from cluster.reasons.timeline import Timeline
from cluster.shared import Kubectl, SharedCluster
from muster.api.crd import format_crd_yaml


@pytest.fixture(scope="session")
def stage(shared_cluster: SharedCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Yield the stage for these jobs."""
    shared_cluster.up()
    kubectl, folder = Kubectl(shared_cluster.kubeconfig), tmp_path_factory.mktemp("reasons")
    namespace = f"test-reasons-{uuid.uuid4().hex[:6]}"
    kubectl.define(format_crd_yaml())
    kubectl("create", "namespace", namespace)
    kubectl.wait("create", "serviceaccount/default", f"--namespace={namespace}")
    timeline = Timeline(kubectl, namespace)
    try:
        rights = account(kubectl, Helm(shared_cluster.kubeconfig), namespace, folder, taints=(INTERRUPTION,))
        config = folder / "config.yaml"
        config.write_text(json.dumps({"disruptions": {"taints": [INTERRUPTION]}}), encoding="utf-8")
        with replicas(kubectl, rights, namespace, folder) as operators:
            operators.config = config
            yield Stage(kubectl, namespace, timeline, operators.start())
    finally:
        timeline.close()
        kubectl("delete", "namespace", namespace, "--wait=false")
        name = f"muster-nodes-{namespace}"
        kubectl("delete", "clusterrole", "clusterrolebinding", name, "--ignore-not-found")


@pytest.fixture(autouse=True)
def jobs_of_the_test(request: pytest.FixtureRequest) -> Iterator[None]:
    """Delete the jobs that a test itself applies, because their ranks would take processor time from later tests."""
    if "stage" not in request.fixturenames:
        yield
        return
    stage: Stage = request.getfixturevalue("stage")
    before = len(stage.applied)
    yield
    names = dict.fromkeys(stage.applied[before:])
    if names:
        stage.jobs.run("delete", "dtj", *names, "--ignore-not-found", "--wait=false")


@pytest.fixture
def own_quota(stage: Stage) -> Iterator[None]:
    """Remove the jobs of earlier tests, whose pods would count, and afterwards the quota."""
    stage.jobs.run("delete", "dtj", "--all")
    stage.until(lambda: not stage.kubectl.list(stage.namespace, "pods", "muster.dev/job"))
    yield
    stage.jobs.run("delete", "resourcequota", "pods", "--ignore-not-found")
