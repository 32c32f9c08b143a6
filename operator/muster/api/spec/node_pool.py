"""The machines that a job asks for: by the name of a pool of the operator's configuration, or in its own words."""

from typing import Annotated, Literal

from pydantic import Field

from muster.api.document import quoted
from muster.api.spec.model import KubernetesObject, Model

MAX_LABELS = 32

TYPE_LABEL = "node.kubernetes.io/instance-type"
"""Kubernetes' well-known label, which the cloud's controller sets on every machine."""

LabelKey = Annotated[
    str, Field(min_length=1, max_length=317, pattern=r"^([a-z0-9.-]+/)?[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$")
]
"""As Kubernetes has them: at most 253 characters of a domain, a slash and 63 of a name."""

LabelValue = Annotated[str, Field(max_length=63)]

PoolName = Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$")]


class PoolFields(Model):
    """What a pool says of its machines, and of how a job's nodes lie on them."""

    instance_type: str | None = Field(
        default=None,
        description="Their type, such as p5.48xlarge: devices, EFA, huge pages and tolerations follow from it.",
        min_length=1,
        max_length=63,
        pattern=r"^[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$",
    )
    node_selector: Annotated[dict[str, LabelValue], Field(max_length=MAX_LABELS)] = Field(
        default_factory=dict, description="Labels that they have."
    )
    tolerations: Annotated[tuple[KubernetesObject, ...], Field(max_length=32)] = Field(
        default=(), description="Their taints, as tolerations of a pod."
    )
    zone: Literal["Same", "Any"] | None = Field(
        default=None,
        description="Same: all the job's nodes in one availability zone. Unset: Same where they use EFA, else Any.",
    )
    same_labels: Annotated[tuple[LabelKey, ...], Field(max_length=4)] = Field(
        default=(),
        description="Labels of which all the job's machines have the same value, such as "
        "topology.k8s.aws/network-node-layer-3.",
    )
    machine: Literal["Own", "Any"] | None = Field(
        default=None, description="Own, or unset: no two of the job's nodes share a machine. Any: they may."
    )


class NodePool(PoolFields):
    """A pool's name and nothing else, or what a pool says."""

    name: PoolName | None = Field(default=None, description="A pool of the operator's configuration.")


class NamedPool(PoolFields):
    """A pool of the operator's configuration."""

    name: PoolName = Field(description="What jobs call it.")


ONE_TYPE = "no machine is of two types; remove one of them"


def two_types(pool: PoolFields) -> str | None:
    """The pool's two words about its machines' type, where they differ; None where they don't."""
    label = pool.node_selector.get(TYPE_LABEL)
    if pool.instance_type is None or label is None or label == pool.instance_type:
        return None
    return f"instanceType {quoted(pool.instance_type)} beside nodeSelector {TYPE_LABEL}: {quoted(label)}"
