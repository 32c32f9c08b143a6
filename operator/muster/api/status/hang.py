"""The type of `status.hang`: ranks that run but complete no step."""

from pydantic import Field

from muster.api.spec.model import Model


class HangRecord(Model):
    """Ranks that run but have completed no optimizer step for a long time."""

    attempt: int = Field(description="The attempt of the ranks.", ge=1)
    count: int = Field(description="The number of ranks that hang.", ge=1)
    ranks: str = Field(
        description="The ranks, as ranges: 0-12,14-31. Cut off with an ellipsis after 512 characters.", max_length=520
    )
    rank: int = Field(
        description="The rank that most likely caused the hang: few other ranks have the same activity.", ge=0
    )
    step: int | None = Field(default=None, description="The number of optimizer steps that this rank has completed.")
    since: str = Field(
        description="The time of the last step of the rank that hangs longest (RFC 3339).", max_length=40
    )
    is_failure: bool = Field(
        default=False,
        description="Whether the hang fails the attempt, because failurePolicy.hangTimeoutSeconds is set.",
    )
