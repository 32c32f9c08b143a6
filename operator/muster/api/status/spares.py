"""The type of `status.spares`."""

from pydantic import Field

from muster.api.spec.model import Model

MAX_MESSAGE_CHARS = 1024


class SpareStatus(Model):
    """The hot spares of the job."""

    desired: int = Field(description="The number of spares in the spec.", ge=0)
    ready: int = Field(description="The number of spares that can take a node's place at once.", ge=0)
    message: str = Field(
        default="", description="Why the other spares are not ready; empty if all are.", max_length=MAX_MESSAGE_CHARS
    )
