"""The types of `status.restarts`: the attempts that failed."""

from typing import Annotated

from pydantic import Field

from muster.api.spec.failure_policy import MAX_HISTORY
from muster.api.spec.model import Model

MAX_COUNT = 1_000_000
MAX_REASON_CHARS = 64


class RestartRecord(Model):
    """A failure after which muster started the ranks again."""

    attempt: int = Field(description="The attempt that failed.", ge=1)
    reason: str = Field(description="The reason of the failure, as one CamelCase word.", max_length=MAX_REASON_CHARS)
    message: str = Field(description="The rank or pod that failed first, and its error.", max_length=1024)
    rank: int | None = Field(
        default=None, description="The rank that failed first; unset if a pod or a launcher failed first."
    )
    node: int | None = Field(default=None, description="The node rank of the first failure.")
    step: int | None = Field(default=None, description="The number of optimizer steps that the rank had completed.")
    counts_as: str = Field(
        description="The limit that the failure counts against: Failure (maxRestarts), Disruption (maxDisruptions) or "
        "Nothing.",
        max_length=16,
    )
    replaced_pods: int = Field(default=0, description="The number of pods that muster replaced.", ge=0)
    at: str = Field(description="The time of the failure (RFC 3339).", max_length=40)
    seconds_lost: float | None = Field(
        default=None, description="The seconds from the failure until all ranks ran again; unset until then."
    )


class Restarts(Model):
    """How often muster has started the ranks again after a failure."""

    total: int = Field(description="The number of restarts.", ge=0, le=MAX_COUNT)
    failures: int = Field(description="The restarts that count against failurePolicy.maxRestarts.", ge=0, le=MAX_COUNT)
    disruptions: int = Field(
        description="The restarts that count against failurePolicy.maxDisruptions.", ge=0, le=MAX_COUNT
    )
    replacement: int = Field(
        description="The lowest replacement number of the current attempt's pods.", ge=0, le=MAX_COUNT
    )
    is_pending: bool = Field(default=False, description="Whether the current attempt has not started yet.")
    not_before: str | None = Field(
        default=None, description="The earliest start of the current attempt (RFC 3339).", max_length=40
    )
    history: Annotated[tuple[RestartRecord, ...], Field(max_length=MAX_HISTORY)] = Field(
        default=(), description=f"The last {MAX_HISTORY} failures, oldest first."
    )


NO_RESTARTS = Restarts(total=0, failures=0, disruptions=0, replacement=0)
"""The restarts of a job that muster has not restarted."""
