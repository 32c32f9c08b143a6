"""The checks of `muster doctor` that concern the cluster's nodes and network, and the user's permissions."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from muster.api.document import JSON
from muster.api.json_fields import read_mapping, read_string
from muster.api.names import GROUP, PLURAL
from muster.api.plurals import pluralize
from muster.cli.doctor.finding import Finding, has_failed, is_ok, is_unknown
from muster.cli.doctor.installation import Cluster
from muster.core.instances import INSTANCE_TYPES, InstanceHardware
from muster.objects.kubernetes.kinds import Kind, Object, ParseOptions

KUBE_NODES = Kind(
    "", "v1", "nodes", "Node", ParseOptions(metadata=frozenset({"name", "labels"}), parts=frozenset({"status"}))
)
REVIEWS = Kind("authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview")

GPU_RESOURCES = ("nvidia.com/gpu", "amd.com/gpu", "aws.amazon.com/neuroncore", "aws.amazon.com/neuron")
EFA_RESOURCE = "vpc.amazonaws.com/efa"

_MAX_NAMES = 3

_INSTANCE_TYPE_LABEL = "node.kubernetes.io/instance-type"


@dataclass(frozen=True)
class Permission:
    """A request that users of muster make."""

    verb: str
    group: str
    resource: str
    subresource: str = ""

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}{f'/{self.subresource}' if self.subresource else ''}"


PERMISSIONS = (
    *(Permission(verb, GROUP, PLURAL) for verb in ("get", "list", "watch", "create", "patch", "delete")),
    Permission("list", "", "pods"),
    Permission("get", "", "pods", "log"),
)


async def check_network_policy(_: Cluster) -> Finding:
    """Say what no request to the API server can show."""
    return is_unknown(
        "the API server does not show whether the cluster's network enforces NetworkPolicies",
        "see the documentation of the network plug-in: on EKS, for example, it is an option of the VPC CNI",
    )


async def check_gpus(cluster: Cluster) -> Finding:
    """Check that the nodes with GPUs offer them."""
    nodes = (await cluster.client.list(KUBE_NODES)).items
    missing = [_describe(node) for node in nodes if _lacks_gpus(node)]
    if missing:
        return has_failed(
            f"{pluralize(len(missing), 'node')} with GPUs or Neuron cores offer none: {_join(missing)}",
            "install the device plug-in of the vendor, and see its pods' logs on these nodes",
        )
    return _describe_total(nodes, GPU_RESOURCES, "no node offers GPUs; jobs on CPUs run")


def _lacks_gpus(node: Object) -> bool:
    hardware = _find_hardware(node)
    return bool(hardware.gpus or hardware.neuron_chips) and not any(_get_count(node, name) for name in GPU_RESOURCES)


async def check_efa(cluster: Cluster) -> Finding:
    """Check that the nodes with EFA offer it."""
    nodes = (await cluster.client.list(KUBE_NODES)).items
    missing = [_describe(node) for node in nodes if _find_hardware(node).efa and not _get_count(node, EFA_RESOURCE)]
    if missing:
        return has_failed(
            f"{pluralize(len(missing), 'node')} with EFA offer none: {_join(missing)}",
            "install AWS' EFA device plug-in, and start the nodes with EFA network interfaces: docs/efa.md",
        )
    return _describe_total(nodes, (EFA_RESOURCE,), "no node offers EFA; jobs use TCP")


def _describe_total(nodes: tuple[Object, ...], resources: tuple[str, ...], without: str) -> Finding:
    totals = Counter({name: sum(_get_count(node, name) for node in nodes) for name in resources})
    parts = [f"{count} {name}" for name, count in totals.items() if count]
    return is_ok(f"{pluralize(len(nodes), 'node')}: {', '.join(parts) if parts else without}")


def _find_hardware(node: Object) -> InstanceHardware:
    labels = read_mapping(read_mapping(node.get("metadata")).get("labels"))
    return INSTANCE_TYPES.get(read_string(labels.get(_INSTANCE_TYPE_LABEL)), InstanceHardware())


def _get_count(node: Object, resource: str) -> int:
    allocatable = read_mapping(read_mapping(node.get("status")).get("allocatable"))
    text = read_string(allocatable.get(resource))
    return int(text) if text.isascii() and text.isdigit() else 0


def _describe(node: Object) -> str:
    return read_string(read_mapping(node.get("metadata")).get("name"))


def _join(names: list[str]) -> str:
    shown = ", ".join(names[:_MAX_NAMES])
    return shown if len(names) <= _MAX_NAMES else f"{shown} and {len(names) - _MAX_NAMES} more"


async def check_permissions(cluster: Cluster) -> Finding:
    """Ask the API server what the user may do in the namespace."""
    denied = [permission for permission in PERMISSIONS if not await _is_allowed(cluster, permission)]
    if denied:
        return has_failed(
            f"in the namespace {cluster.namespace} you may not {', '.join(map(str, denied))}",
            "ask an administrator for the ClusterRole edit in this namespace, to which the chart adds muster's rights",
        )
    return is_ok(f"in the namespace {cluster.namespace} you may create, change and delete jobs and read logs")


async def _is_allowed(cluster: Cluster, permission: Permission) -> bool:
    attributes: dict[str, JSON] = {
        "namespace": cluster.namespace,
        "verb": permission.verb,
        "group": permission.group,
        "resource": permission.resource,
        "subresource": permission.subresource,
    }
    review: dict[str, JSON] = {
        "apiVersion": REVIEWS.api_version,
        "kind": REVIEWS.name,
        "spec": {"resourceAttributes": attributes},
    }
    # The API server answers a review and stores nothing.
    answer = await cluster.client.create(REVIEWS, None, review)
    return read_mapping(answer.get("status")).get("allowed") is True
