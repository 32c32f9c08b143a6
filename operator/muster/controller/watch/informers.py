"""Create the informers of the objects that muster reads in Kubernetes: pods, warnings about them, Kubernetes nodes."""

from muster.api.names import JOB_UID_LABEL
from muster.backends.kubernetes.kube_node_taints import KubeNodeTaints
from muster.backends.kubernetes.pod_index import PodIndex
from muster.clients.kubernetes.client import Client
from muster.clients.kubernetes.informer import Informer
from muster.clients.kubernetes.object_versions import NoObjectVersions
from muster.core.shard import Shard
from muster.objects.kubernetes.kinds import NODES
from muster.objects.kubernetes.names import SHARD_LABEL
from muster.objects.kubernetes.pods import JOB_PODS
from muster.objects.kubernetes.warnings import POD_WARNINGS


def make_informers(
    client: Client, namespaces: tuple[str, ...], shard: Shard, pods: PodIndex, taints: KubeNodeTaints
) -> dict[str, Informer]:
    """Create the informers, by the name of their objects. Empty `namespaces` means all. They watch the shard's pods.

    If no taint announces the end of a Kubernetes node, muster reads no Kubernetes nodes.
    """
    selector = f"{JOB_UID_LABEL},{SHARD_LABEL}={shard.index}" if shard.index else f"{JOB_UID_LABEL},!{SHARD_LABEL}"
    warnings = "involvedObject.kind=Pod,type=Warning"
    informers = {
        "pods": Informer(client, JOB_PODS, namespaces, pods.handle_change, labels=selector),
        "warnings": Informer(
            client, POD_WARNINGS, namespaces, pods.handle_event, fields=warnings, versions=NoObjectVersions
        ),
    }
    if taints.keys:
        informers["Kubernetes nodes"] = Informer(client, NODES, (), taints.handle_change)
    return informers
