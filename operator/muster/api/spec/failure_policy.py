"""The types of `spec.failurePolicy`."""

from typing import Annotated, Literal

from pydantic import Field

from muster.api.spec.limits import MAX_NODES_WITH_SPARES, MAX_WORLD_SIZE
from muster.api.spec.model import Model

MAX_RESTARTS = 1000
MAX_DISRUPTIONS = 1000
DEFAULT_DISRUPTIONS = 10

DEFAULT_FENCE_SECONDS = 45
MIN_FENCE_SECONDS = 30
MAX_FENCE_SECONDS = 3600
FENCE_MARGIN_SECONDS = 15
"""The time in which a node that lost its network detects the loss and stops its ranks."""

MAX_WINDOW_SECONDS = 31_536_000
MAX_HISTORY = 32
"""The maximum number of failures that a status lists, and so the maximum that a sliding window can count."""

MIN_HANG_SECONDS = 5
MAX_HANG_SECONDS = 86_400

MAX_RULES = 20
MAX_VALUES = 64

ExitCode = Annotated[int, Field(ge=1, le=255)]
Signal = Annotated[int, Field(ge=1, le=64)]
Rank = Annotated[int, Field(ge=0, le=MAX_WORLD_SIZE - 1)]
NodeNumber = Annotated[int, Field(ge=0, le=MAX_NODES_WITH_SPARES - 1)]
Reason = Annotated[str, Field(pattern=r"^[A-Z][A-Za-z0-9]*$", max_length=64)]

RestartScope = Literal["InPlace", "Pods"]
RuleAction = Literal["Restart", "Fail", "Ignore"]


class FailureRule(Model):
    """What muster does about certain failures. A rule matches a failure that matches each of the rule's lists."""

    action: RuleAction = Field(
        description="Restart: muster starts the ranks again, at most maxRestarts times. Fail: muster ends the job. "
        "Ignore: muster starts the ranks again and does not count the restart; for a Straggler it only reports."
    )
    exit_codes: tuple[ExitCode, ...] = Field(
        default=(), description="The exit codes that match, of the rank that failed first.", max_length=MAX_VALUES
    )
    signals: tuple[Signal, ...] = Field(
        default=(),
        description="The signals that match, by number, of the rank that failed first.",
        max_length=MAX_VALUES,
    )
    reasons: tuple[Reason, ...] = Field(
        default=(),
        description="The reasons that match, as in status.ranks.details: OOMKilled, Evicted, ... "
        "Straggler: a rank is slower than the others; with Restart muster replaces its pod.",
        max_length=MAX_VALUES,
    )
    ranks: tuple[Rank, ...] = Field(default=(), description="The ranks that match.", max_length=MAX_VALUES)
    nodes: tuple[NodeNumber, ...] = Field(
        default=(), description="The nodes that match, as in the names of their pods.", max_length=MAX_VALUES
    )


class FailurePolicy(Model):
    """How muster restarts a failed job."""

    max_restarts: int = Field(
        default=0,
        description="How often muster starts the ranks again after a failure of a rank. Disruptions do not count. On "
        "SageMaker, requests that fail because SageMaker lacks capacity do not count either.",
        ge=0,
        le=MAX_RESTARTS,
    )
    window_seconds: int | None = Field(
        default=None,
        description=f"maxRestarts and maxDisruptions count only the failures of this many past seconds; their "
        f"sum may then be at most {MAX_HISTORY}. If unset, all failures count.",
        ge=1,
        le=MAX_WINDOW_SECONDS,
    )
    max_disruptions: int = Field(
        default=DEFAULT_DISRUPTIONS,
        description="How often muster starts the ranks again after a disruption, which is an eviction, a "
        "preemption, a deleted pod, or a lost or drained node.",
        ge=0,
        le=MAX_DISRUPTIONS,
    )
    hang_timeout_seconds: int | None = Field(
        default=None,
        description="The seconds without an optimizer step after which the attempt fails with the reason Hung. For "
        "each rank, the time starts at its first step. Choose more than the longest step, evaluation and checkpoint "
        "take. If unset, the condition Stalled is True after 600 seconds without a step, and muster stops nothing.",
        ge=MIN_HANG_SECONDS,
        le=MAX_HANG_SECONDS,
    )
    restart_scope: RestartScope = Field(
        default="InPlace",
        description="InPlace: muster keeps the pods that still work and starts the ranks again in them. "
        "Pods: muster replaces all pods of the job.",
    )
    fence_seconds: int = Field(
        default=DEFAULT_FENCE_SECONDS,
        description="A node that reaches neither muster nor another node of the job for this long stops its ranks. "
        f"If a lost pod may still run, muster replaces it {FENCE_MARGIN_SECONDS} s after this time at the earliest. A "
        "job with one node never stops its ranks by itself.",
        ge=MIN_FENCE_SECONDS,
        le=MAX_FENCE_SECONDS,
    )
    rules: tuple[FailureRule, ...] = Field(
        default=(),
        description="The first rule that matches a failure applies. If none matches, script errors before the first "
        "step (exit code 2, SyntaxError, ImportError, an unknown command) end the job, and other failures "
        "restart it.",
        max_length=MAX_RULES,
    )
