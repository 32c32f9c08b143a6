"""The types of `status.restarts` and `status.restartRequest`: the earlier attempts, and why they ended."""

from typing import Annotated

from pydantic import Field

from muster.api.names import MAX_RESTART_REQUEST_CHARS, RESTART_ANNOTATION
from muster.api.spec.failure_policy import MAX_HISTORY
from muster.api.spec.model import Model

MAX_COUNT = 1_000_000
MAX_REASON_CHARS = 64
MAX_AVOIDED_NODES = 8
MAX_NODE_NAME_CHARS = 253
"""The maximum length of a Kubernetes object's name."""

MAX_MEMBERS_CHARS = 1024
"""A record with a longer list of members omits the list, because the history has many records."""


MAX_RESIZE_REASON_CHARS = 300


class RestartRecord(Model):
    """A failure or a request after which muster started the ranks again."""

    attempt: int = Field(description="The attempt that ended.", ge=1)
    reason: str = Field(
        description="The reason of the failure, as one CamelCase word; RestartRequested after a request, "
        "Resized if muster changed the number of nodes.",
        max_length=MAX_REASON_CHARS,
    )
    message: str = Field(description="The rank or pod that failed first, and its error.", max_length=1024)
    rank: int | None = Field(
        default=None, description="The rank that failed first; unset if a pod or a launcher failed first."
    )
    node: int | None = Field(default=None, description="The node of the first failure, as in the name of its pod.")
    node_name: str | None = Field(
        default=None, description="The Kubernetes node of the first failure.", max_length=MAX_NODE_NAME_CHARS
    )
    step: int | None = Field(default=None, description="The number of optimizer steps that the rank had completed.")
    counts_as: str = Field(
        description="The limit that the failure counts against: Failure (maxRestarts), Disruption (maxDisruptions) or "
        "Nothing.",
        max_length=16,
    )
    members: str | None = Field(
        default=None,
        description="The nodes that ran the ranks, as in status.members; unset for a job that has neither spares nor "
        "elastic, because all its nodes run ranks.",
        max_length=MAX_MEMBERS_CHARS,
    )
    replaced_pods: int = Field(default=0, description="The number of pods that muster replaced.", ge=0)
    at: str = Field(
        description="The time of the failure, or when muster began to stop the ranks after a request (RFC 3339).",
        max_length=40,
    )
    script_step: int | None = Field(
        default=None,
        description="The highest step that the script reported with muster_worker.report in the attempt; unset if it "
        "reported no step.",
        ge=0,
    )
    steps_lost: int | None = Field(
        default=None,
        description="The steps that the next attempt has to repeat: scriptStep minus the first step that the script "
        "reports in the next attempt, at least 0. Unset until then, and if the script reports no step.",
        ge=0,
    )
    seconds_lost: float | None = Field(
        default=None, description="The seconds between `at` and the time when all ranks ran again; unset until then."
    )


class AvoidedNode(Model):
    """A Kubernetes node on which the job has failed repeatedly, or had a straggler."""

    node_name: str = Field(description="The Kubernetes node.", max_length=MAX_NODE_NAME_CHARS)
    failures: int = Field(description="The number of failures on it in the history.", ge=1, le=MAX_HISTORY)
    reason: str = Field(description="The reason of the last failure on it.", max_length=MAX_REASON_CHARS)


class Restarts(Model):
    """How often muster has started the ranks again after a failure or a request."""

    total: int = Field(description="The number of restarts.", ge=0, le=MAX_COUNT)
    failures: int = Field(description="The restarts that count against failurePolicy.maxRestarts.", ge=0, le=MAX_COUNT)
    disruptions: int = Field(
        description="The restarts that count against failurePolicy.maxDisruptions.", ge=0, le=MAX_COUNT
    )
    replacement: int = Field(
        description="The lowest replacement number that a pod of the current attempt may have. A node's first pod has "
        "the replacement number 0, the pod that replaces it 1, and so on.",
        ge=0,
        le=MAX_COUNT,
    )
    is_pending: bool = Field(default=False, description="Whether the current attempt has not started yet.")
    not_before: str | None = Field(
        default=None, description="The earliest start of the current attempt (RFC 3339).", max_length=40
    )
    history: Annotated[tuple[RestartRecord, ...], Field(max_length=MAX_HISTORY)] = Field(
        default=(), description=f"The last {MAX_HISTORY} failures and requests, oldest first."
    )
    avoided_nodes: Annotated[tuple[AvoidedNode, ...], Field(max_length=MAX_AVOIDED_NODES)] = Field(
        default=(),
        description="The Kubernetes nodes on which the job has failed at least twice or had a straggler, by the "
        "history: new pods prefer other nodes.",
    )


NO_RESTARTS = Restarts(total=0, failures=0, disruptions=0, replacement=0)
"""The restarts of a job that muster has not restarted."""


class RestartRequest(Model):
    """The last restart that a user requested, or that muster began in order to change the number of nodes."""

    value: str = Field(
        description=f"The first {MAX_RESTART_REQUEST_CHARS} characters that the annotation {RESTART_ANNOTATION} had "
        "when muster began to handle the last request.",
        max_length=MAX_RESTART_REQUEST_CHARS,
    )
    stopping_since: str | None = Field(
        default=None,
        description="The time when muster began to stop the ranks for this request (RFC 3339); unset after the "
        "restart.",
        max_length=40,
    )
    resize_reason: str = Field(
        default="",
        description="Why muster changes the number of nodes of an elastic job, if it stops the ranks for that.",
        max_length=MAX_RESIZE_REASON_CHARS,
    )
    refused_value: str = Field(
        default="",
        description=f"The value of the annotation {RESTART_ANNOTATION} that muster refuses, because the code that "
        "`muster rerun` sent can't be used. The condition Accepted has the reason.",
        max_length=MAX_RESTART_REQUEST_CHARS,
    )

    @property
    def is_pending(self) -> bool:
        """Whether muster is still stopping the ranks for this request."""
        return self.stopping_since is not None
