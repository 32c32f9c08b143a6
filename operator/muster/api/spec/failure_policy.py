"""`spec.failurePolicy` as a type: what muster does when a job fails."""

from typing import Annotated, Literal

from pydantic import Field

from muster.api.spec.model import Model

MAX_RESTARTS = 1000
MAX_DISRUPTIONS = 1000
DEFAULT_DISRUPTIONS = 10

MAX_WINDOW_SECONDS = 31_536_000
MAX_HISTORY = 32
"""Failures that a status lists, and so the most that a sliding window can count."""

MAX_RULES = 20
MAX_VALUES = 64

ExitCode = Annotated[int, Field(ge=1, le=255)]
Signal = Annotated[int, Field(ge=1, le=64)]
Index = Annotated[int, Field(ge=0, le=1_280_000)]
Reason = Annotated[str, Field(pattern=r"^[A-Z][A-Za-z0-9]*$", max_length=64)]

RestartScope = Literal["InPlace", "Pods"]
RuleAction = Literal["Restart", "Fail", "Ignore"]


class FailureRule(Model):
    """What to do about some failures. A rule matches a failure that has every property which the rule names."""

    action: RuleAction = Field(
        description="Restart: start the ranks again, within maxRestarts. Fail: end the job. "
        "Ignore: start the ranks again, and do not count it."
    )
    exit_codes: tuple[ExitCode, ...] = Field(
        default=(), description="Exit codes of the rank that failed first.", max_length=MAX_VALUES
    )
    signals: tuple[Signal, ...] = Field(
        default=(), description="Numbers of signals that ended that rank.", max_length=MAX_VALUES
    )
    reasons: tuple[Reason, ...] = Field(
        default=(), description="Reasons as in status.ranks.details: OOMKilled, Evicted, ...", max_length=MAX_VALUES
    )
    ranks: tuple[Index, ...] = Field(default=(), description="Global ranks.", max_length=MAX_VALUES)
    nodes: tuple[Index, ...] = Field(default=(), description="Ranks of nodes.", max_length=MAX_VALUES)


class FailurePolicy(Model):
    """How muster restarts a failed job."""

    max_restarts: int = Field(
        default=0,
        description="How often muster starts the ranks again after one of them failed. Disruptions do not count, and "
        "on SageMaker requests for instances that it does not have at the moment do not either.",
        ge=0,
        le=MAX_RESTARTS,
    )
    window_seconds: int | None = Field(
        default=None,
        description=f"maxRestarts and maxDisruptions count only the failures of the last so many seconds; their "
        f"sum is at most {MAX_HISTORY} then. Unset: all failures count.",
        ge=1,
        le=MAX_WINDOW_SECONDS,
    )
    max_disruptions: int = Field(
        default=DEFAULT_DISRUPTIONS,
        description="How often muster starts the ranks again because the cluster took a pod away: eviction, "
        "preemption, a deleted pod, a lost or drained node.",
        ge=0,
        le=MAX_DISRUPTIONS,
    )
    restart_scope: RestartScope = Field(
        default="InPlace",
        description="InPlace: keep the pods that can go on, and start the ranks again in them. "
        "Pods: replace all pods of the job.",
    )
    rules: tuple[FailureRule, ...] = Field(
        default=(),
        description="The first rule that matches a failure decides. Without one, errors of the script before its first "
        "step (exit code 2, SyntaxError, ImportError, a command that does not exist) end the job, and other failures "
        "restart it.",
        max_length=MAX_RULES,
    )
