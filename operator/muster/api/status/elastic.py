"""The type of `status.elastic`."""

from pydantic import Field

from muster.api.spec.model import Model

MAX_MESSAGE_CHARS = 1024
MAX_SELECTOR_CHARS = 256


class ElasticStatus(Model):
    """The size of an elastic job."""

    followed_nodes: int = Field(
        description="The last value of spec.nodes for which muster has started an attempt. If spec.nodes is higher, a "
        "user has raised it, and muster adds nodes as soon as they are ready.",
        ge=0,
        le=10000,
    )
    selector: str = Field(
        default="",
        description="The label selector of the job's pods, for the scale subresource.",
        max_length=MAX_SELECTOR_CHARS,
    )
    message: str = Field(
        default="",
        description="Why the job runs with fewer nodes than spec.nodes; empty otherwise.",
        max_length=MAX_MESSAGE_CHARS,
    )
