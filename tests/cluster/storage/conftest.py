"""One namespace of restricted pods, its operator, and an S3 for pods whose service account has a role."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator

import pytest

from cluster.helm import Helm
from cluster.operator.operator_process import account, replicas
from cluster.reasons.stage import Stage
from cluster.reasons.timeline import Timeline
from cluster.shared import Kubectl, SharedCluster
from cluster.storage.pod_identity import ACCOUNT, pod_identity
from cluster.storage.pods_s3 import PodsS3, pods_s3
from muster.api.crd import format_crd_yaml


@pytest.fixture(scope="session")
def s3() -> Iterator[PodsS3]:
    """Yield an S3 with one bucket, `data`."""
    with pods_s3() as site:
        site.client.create_bucket(Bucket="data")
        yield site


@pytest.fixture(scope="session")
def stage(shared_cluster: SharedCluster, s3: PodsS3, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Yield the stage for these jobs."""
    shared_cluster.up()
    kubectl, folder = Kubectl(shared_cluster.kubeconfig), tmp_path_factory.mktemp("storage")
    namespace = f"test-storage-{uuid.uuid4().hex[:6]}"
    kubectl.define(format_crd_yaml())
    kubectl("create", "namespace", namespace)
    kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
    kubectl("create", "serviceaccount", ACCOUNT, f"--namespace={namespace}")
    timeline = Timeline(kubectl, namespace)
    try:
        rights = account(kubectl, Helm(shared_cluster.kubeconfig), namespace, folder)
        with (
            pod_identity(kubectl, namespace, s3.url, folder),
            replicas(kubectl, rights, namespace, folder) as operators,
        ):
            grants = {"namespaces": [namespace], "buckets": [{"name": "data"}], "gitHosts": ["*"]}
            config = {"storage": {"s3Endpoint": s3.url}, "tenancy": [grants]}
            operators.config = folder / "config.yaml"
            operators.config.write_text(json.dumps(config), encoding="utf-8")
            operators.storage_image = shared_cluster.operator_image()
            yield Stage(kubectl, namespace, timeline, operators.start())
    finally:
        timeline.close()
        kubectl("delete", "namespace", namespace, "--wait=false")
