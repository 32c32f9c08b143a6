"""`status.restarts` as types: which attempts failed, and what followed."""

from typing import Annotated

from pydantic import Field

from muster.api.spec.failure_policy import MAX_HISTORY
from muster.api.spec.model import Model

MAX_COUNT = 1_000_000
MAX_REASON_CHARS = 64


class RestartRecord(Model):
    """A failure after which muster started the ranks again."""

    attempt: int = Field(description="The attempt that failed.", ge=1)
    reason: str = Field(description="Why, as one CamelCase word.", max_length=MAX_REASON_CHARS)
    message: str = Field(description="Which rank or pod failed first, and how.", max_length=1024)
    rank: int | None = Field(default=None, description="The rank that failed first; unset if a pod or launcher did.")
    node: int | None = Field(default=None, description="The rank of the node on which the failure began.")
    step: int | None = Field(default=None, description="Optimizer steps that the rank had completed.")
    counts_as: str = Field(
        description="Failure (counts for maxRestarts), Disruption (for maxDisruptions) or Nothing.", max_length=16
    )
    replaced_pods: int = Field(default=0, description="How many pods were replaced.", ge=0)
    at: str = Field(description="When it failed (RFC 3339).", max_length=40)
    seconds_lost: float | None = Field(
        default=None, description="From the failure until all ranks ran again; unset until then."
    )


class Restarts(Model):
    """How often muster has started the ranks again after a failure."""

    total: int = Field(description="All of them.", ge=0, le=MAX_COUNT)
    failures: int = Field(description="Those that count for failurePolicy.maxRestarts.", ge=0, le=MAX_COUNT)
    disruptions: int = Field(description="Those that count for failurePolicy.maxDisruptions.", ge=0, le=MAX_COUNT)
    replacement: int = Field(
        description="Pods with lower replacement numbers are from earlier attempts.", ge=0, le=MAX_COUNT
    )
    is_pending: bool = Field(default=False, description="Whether the current attempt has not started yet.")
    not_before: str | None = Field(
        default=None, description="When the current attempt may start at the earliest (RFC 3339).", max_length=40
    )
    history: Annotated[tuple[RestartRecord, ...], Field(max_length=MAX_HISTORY)] = Field(
        default=(), description=f"The last {MAX_HISTORY} failures, oldest first."
    )


NO_RESTARTS = Restarts(total=0, failures=0, disruptions=0, replacement=0)
"""The record of a job that muster has not restarted."""
