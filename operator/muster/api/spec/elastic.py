"""The type of `spec.elastic`."""

from pydantic import Field

from muster.api.spec.model import Model

MAX_RESIZE_SECONDS = 86_400


class Elastic(Model):
    """With how many nodes the job may run."""

    min_nodes: int = Field(
        description="The fewest nodes with which the job goes on after a loss.",
        ge=1,
        le=10000,
    )
    max_nodes: int = Field(
        description="The most nodes that spec.nodes may request while the job runs.",
        ge=1,
        le=10000,
    )
    resize_after_seconds: int = Field(
        default=120,
        description="How long a restart waits for the nodes that are not ready. Then the ranks start on the others, if "
        "these are at least minNodes.",
        ge=0,
        le=MAX_RESIZE_SECONDS,
    )
    grow_after_seconds: int = Field(
        default=600,
        description="How long the ranks run with fewer nodes than spec.nodes, at least, before muster stops them to "
        "add nodes that are ready again. The time doubles with each such growth in the last hours, and is then at "
        "least a minute. If spec.nodes was raised, muster doesn't wait.",
        ge=0,
        le=MAX_RESIZE_SECONDS,
    )
