"""What the benchmarks on the cluster share: a namespace with an operator, and pods with torch and a common folder."""

import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cluster import torch_volume
from cluster.helm import Helm
from cluster.images import PULL_POLICY
from cluster.mpi.pod_installs import PodInstall
from cluster.operator.operator_process import account, replicas
from cluster.shared import Kubectl, Manifest, SharedCluster
from muster.api.crd import format_crd_yaml


def template(folder: Path, grace_seconds: int, mpi: PodInstall | None = None) -> Manifest:
    """Give the pods this environment's torch, an MPI if wanted, and `folder` as /bench.

    The nodes share this machine's files.
    """
    torch, mpi = torch_volume.provide(), mpi or PodInstall("none")
    trainer = {
        "name": "trainer",
        "imagePullPolicy": PULL_POLICY,
        "env": torch_volume.merge_paths([*torch.env, *mpi.env]),
        "volumeMounts": [*torch.mounts, *mpi.mounts, {"name": "bench", "mountPath": "/bench"}],
    }
    volumes = [*torch.volumes, *mpi.volumes, {"name": "bench", "hostPath": {"path": str(folder), "type": "Directory"}}]
    return {"spec": {"terminationGracePeriodSeconds": grace_seconds, "containers": [trainer], "volumes": volumes}}


@contextmanager
def operated_namespace() -> Iterator[tuple[Kubectl, str]]:
    """Yield a namespace of the cluster in which an operator runs jobs."""
    cluster = SharedCluster()
    cluster.up()
    kubectl, namespace = Kubectl(cluster.kubeconfig), f"bench-{uuid.uuid4().hex[:6]}"
    kubectl.define(format_crd_yaml())
    kubectl("create", "namespace", namespace)
    try:
        kubectl.wait("create", "serviceaccount/default", f"--namespace={namespace}")
        with tempfile.TemporaryDirectory() as folder:
            rights = account(kubectl, Helm(cluster.kubeconfig), namespace, Path(folder))
            with replicas(kubectl, rights, namespace, Path(folder), is_forked=False) as operators:
                operators.start()
                yield kubectl, namespace
    finally:
        kubectl("delete", "namespace", namespace, "--wait=false")
        cluster.close()
