"""`spec.nodePool`: the Kubernetes nodes for a job, by fields or by a pool's name from the operator's configuration."""

from typing import Annotated, Literal

from pydantic import Field

from muster.api.document import quote
from muster.api.spec.model import KubernetesObject, Model

MAX_LABELS = 32

TYPE_LABEL = "node.kubernetes.io/instance-type"
"""Kubernetes' well-known label, which the cloud controller manager sets on every Kubernetes node."""

LabelKey = Annotated[
    str, Field(min_length=1, max_length=317, pattern=r"^([a-z0-9.-]+/)?[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$")
]
"""Kubernetes' form of a label key: a domain of at most 253 characters, a slash and a name of at most 63."""

LabelValue = Annotated[str, Field(max_length=63)]

PoolName = Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$")]


class PoolFields(Model):
    """Properties of a pool's Kubernetes nodes, and how a job's nodes are placed on them."""

    instance_type: str | None = Field(
        default=None,
        description="The nodes' instance type, such as p5.48xlarge. It determines devices, huge pages and tolerations.",
        min_length=1,
        max_length=63,
        pattern=r"^[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$",
    )
    node_selector: Annotated[dict[str, LabelValue], Field(max_length=MAX_LABELS)] = Field(
        default_factory=dict, description="Labels of the Kubernetes nodes, as in a pod's nodeSelector."
    )
    tolerations: Annotated[tuple[KubernetesObject, ...], Field(max_length=32)] = Field(
        default=(), description="Tolerations for the taints of the Kubernetes nodes."
    )
    zone: Literal["Same", "Any"] | None = Field(
        default=None,
        description="Same: all the job's nodes in one availability zone. Unset: Same if they use EFA, else Any.",
    )
    same_labels: Annotated[tuple[LabelKey, ...], Field(max_length=4)] = Field(
        default=(),
        description="Labels that have one value on all of the job's Kubernetes nodes, such as "
        "topology.k8s.aws/network-node-layer-3.",
    )
    machine: Literal["Own", "Any"] | None = Field(
        default=None,
        description="Own, or unset: each of the job's nodes gets its own Kubernetes node. Any: several may share one.",
    )


class NodePool(PoolFields):
    """A pool's name alone, or a description of a pool."""

    name: PoolName | None = Field(default=None, description="A pool of the operator's configuration.")


class NamedPool(PoolFields):
    """A pool of the operator's configuration."""

    name: PoolName = Field(description="The name by which jobs refer to it.")


ONE_TYPE_MESSAGE = f"instanceType and the label {TYPE_LABEL} in nodeSelector differ; remove one of them"


def find_type_conflict(pool: PoolFields) -> str | None:
    """Return the pool's two different instance types as a message; None if they agree."""
    label = pool.node_selector.get(TYPE_LABEL)
    if pool.instance_type is None or label is None or label == pool.instance_type:
        return None
    return f"instanceType {quote(pool.instance_type)} and nodeSelector {TYPE_LABEL}: {quote(label)}"
