"""The type of `spec.elastic`."""

from pydantic import Field

from muster.api.spec.limits import MAX_NODES
from muster.api.spec.model import Model

MAX_RESIZE_SECONDS = 86_400


class Elastic(Model):
    """The limits of the number of nodes with which the job may run."""

    min_nodes: int = Field(
        description="The minimum number of nodes with which the job continues after it loses nodes.",
        ge=1,
        le=MAX_NODES,
    )
    max_nodes: int = Field(
        description="The maximum of spec.nodes while the job runs.",
        ge=1,
        le=MAX_NODES,
    )
    resize_after_seconds: int = Field(
        default=120,
        description="How long a restart waits for nodes that are not ready. Then the ranks start on the ready nodes, "
        "if at least minNodes are ready.",
        ge=0,
        le=MAX_RESIZE_SECONDS,
    )
    grow_after_seconds: int = Field(
        default=600,
        description="The minimum time that the ranks run with fewer nodes than spec.nodes before muster restarts them "
        "with more nodes. Each such restart in the last 4 hours doubles this time; a doubled time is at least 60 s and "
        "at most 4 hours. If a user raises spec.nodes, muster doesn't wait.",
        ge=0,
        le=MAX_RESIZE_SECONDS,
    )
