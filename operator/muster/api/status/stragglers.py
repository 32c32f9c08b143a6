"""The type of `status.stragglers`: ranks that are slower than the others."""

from typing import Annotated

from pydantic import Field

from muster.api.spec.model import Model
from muster.api.status.restarts import MAX_NODE_NAME_CHARS

MAX_SLOW_RANKS = 16
MAX_SLOW_NODES = 8


class SlowRank(Model):
    """A rank that is slower than the others."""

    rank: int = Field(description="The rank.", ge=0)
    node: int = Field(description="Its node, as in the name of its pod.", ge=0)
    busy_seconds: float = Field(description="Its busy time per step, when muster found the stragglers.")


class SlowNode(Model):
    """A node whose measured ranks are all stragglers."""

    node: int = Field(description="The node, as in the name of its pod.", ge=0)
    node_name: str | None = Field(default=None, description="The Kubernetes node.", max_length=MAX_NODE_NAME_CHARS)


class StragglerRecord(Model):
    """Ranks that are busy much longer in each step than the others, which wait for them."""

    attempt: int = Field(description="The attempt of the ranks.", ge=1)
    count: int = Field(description="The number of stragglers.", ge=1)
    ranks: str = Field(
        description="The ranks, as ranges: 0-12,14-31. Cut off with an ellipsis after 512 characters.", max_length=520
    )
    median_seconds: float = Field(
        description="The median of all ranks' busy times per step, when muster found the stragglers."
    )
    slowest: Annotated[tuple[SlowRank, ...], Field(max_length=MAX_SLOW_RANKS)] = Field(
        default=(),
        description=f"The {MAX_SLOW_RANKS} slowest stragglers, slowest first. If isFailure is true, "
        "muster replaces the pod of the first one.",
    )
    nodes: Annotated[tuple[SlowNode, ...], Field(max_length=MAX_SLOW_NODES)] = Field(
        default=(),
        description=f"At most {MAX_SLOW_NODES} nodes of which all measured ranks are stragglers, so that the cause is "
        "probably the node.",
    )
    instance_type: str | None = Field(
        default=None, description="spec.nodePool.instanceType, the type of these nodes.", max_length=64
    )
    message: str = Field(description="The stragglers and how slow they are, as a sentence.", max_length=1024)
    since: str = Field(
        description="When muster found these stragglers (RFC 3339). It changes only with the set of slow ranks.",
        max_length=40,
    )
    is_failure: bool = Field(
        default=False,
        description="Whether muster stops the ranks to replace the pod of a straggler, because a rule of "
        "failurePolicy.rules has the reason Straggler.",
    )
