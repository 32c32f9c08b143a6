"""The resource's status as types (`status` subresource). muster writes it; people and programs read it."""

from typing import Annotated

from pydantic import Field

from muster.api.spec.model import Model
from muster.api.status.network import NetworkStatus
from muster.api.status.restarts import RestartRecord, Restarts
from muster.api.status.rules import MAX_CONDITIONS
from muster.api.status.sagemaker import BackendStatus

SUSPENDED = "Suspended"
SUSPENDING = "Suspending"
RESUMED = "Resumed"
"""Reasons of the condition Suspended: the job is suspended, is being suspended, or was resumed."""

STOPPING = "Stopping"
"""Reason of Complete or Failed while it is still False: the job has its result, and its pods are being stopped."""

RESTARTING = "Restarting"
"""The phase after a failed attempt has ended, until the next one starts."""

REFUSED = "Refused"
"""The phase of a job that muster does not start until its spec is corrected."""

_FINAL_CONDITIONS = ("Complete", "Failed")
_PHASES_BEFORE_START = ("Pending", "Queued", "Starting", REFUSED)


class Condition(Model):
    """A Kubernetes condition (metav1.Condition)."""

    type: str = Field(
        description="Accepted, Scheduled, Running, Stalled, Suspended, Complete or Failed.", max_length=64
    )
    status: str = Field(description="True, False or Unknown.", max_length=7)
    reason: str = Field(description="Why, as one CamelCase word.")
    message: str = Field(default="", description="Why, as a sentence.")
    last_transition_time: str = Field(description="When the status last changed (RFC 3339).")
    observed_generation: int = Field(default=0, description="The metadata.generation that this condition is about.")


class NodeCounts(Model):
    """The number of nodes."""

    desired: int = Field(description="Nodes that the spec asks for.")
    ready: int = Field(description="Nodes whose agent is ready or running.")


class StateRange(Model):
    """The ranks in one state."""

    state: str = Field(description="Pending, Starting, Running, Succeeded, Failed, Stopped or Unknown.")
    count: int = Field(description="The number of ranks.")
    ranks: str = Field(description="Which ranks, as ranges: 0-12,14-31. At most 512 characters, then an ellipsis.")


class RankDetail(Model):
    """A rank with a problem or another notable state."""

    rank: int = Field(description="The global rank.")
    node: int = Field(description="The node's rank.")
    pod: str | None = Field(default=None, description="The node's pod, on a cluster.")
    node_name: str | None = Field(default=None, description="The Kubernetes node that the pod runs on.")
    state: str = Field(description="The rank's state.")
    pid: int | None = Field(default=None, description="The rank's process id on its node.")
    exit_code: int | None = Field(default=None, description="The exit code; unset if a signal ended it.")
    signal: int | None = Field(default=None, description="The number of the signal that ended it.")
    reason: str = Field(description="Why it is in this state, as one CamelCase word.")
    message: str = Field(default="", description="Its last line of output, or another detail.")
    step: int | None = Field(default=None, description="Optimizer steps that it had completed.")
    activity: str | None = Field(default=None, description="Its activity: all_reduce, backward, ...")
    at: str | None = Field(default=None, description="When it ended (RFC 3339).")


class StepRange(Model):
    """Ranks that have completed the same number of optimizer steps."""

    step: int = Field(description="Optimizer steps.")
    ranks: str = Field(description="Which ranks, as ranges. At most 512 characters, then an ellipsis.")


class RankStatus(Model):
    """All ranks."""

    world: int = Field(description="The number of the job's ranks.")
    running: int = Field(description="The number of running ranks.")
    ready: str = Field(
        description="Running ranks/world, for the RANKS column: 0 of them before the start and after the end."
    )
    by_state: tuple[StateRange, ...] = Field(
        default=(), description="Every rank, by state; the counts add up to world."
    )
    by_step: tuple[StepRange, ...] = Field(
        default=(), description="The ranks' steps, least first: at most 16 groups, the slowest."
    )
    details: tuple[RankDetail, ...] = Field(
        default=(), description="Ranks with a problem or another notable state, first failure first; at most 16."
    )


class Progress(Model):
    """The job's progress."""

    step: int | None = Field(
        default=None,
        description="Optimizer steps that every running rank has completed; unset until a rank has completed one.",
    )
    steps_per_second: float | None = Field(default=None, description="The speed over the last steps.")
    slowest_rank: int | None = Field(default=None, description="The rank with the fewest steps.")
    metrics: dict[str, float] = Field(
        default_factory=dict,
        description="The latest value of each metric: at most 64, those of spec.metrics first, then by name.",
    )
    metrics_left_out: int | None = Field(
        default=None, description="How many more metrics there are; unset when all are shown."
    )
    at: str | None = Field(default=None, description="When the step was reached (RFC 3339).")


class Placement(Model):
    """How often muster deleted scheduled pods of the job because other pods could not be scheduled."""

    releases: int = Field(description="How often muster deleted its pods.", ge=1, le=1_000_000)
    replacement: int = Field(
        description="muster has deleted the pods with lower replacement numbers.", ge=0, le=1_000_000
    )
    released_at: str = Field(description="When muster last deleted them (RFC 3339).")


class Status(Model):
    """The job's observed state."""

    observed_generation: int = Field(default=0, description="The metadata.generation that this status is about.")
    phase: str = Field(
        default="Pending",
        description="Pending, Queued, Starting, Running, Restarting, Suspended, Stopping, "
        "Refused, Succeeded or Failed.",
    )
    message: str = Field(
        default="", description="One sentence: what the job does now, or which rank failed first and how."
    )
    # bounded, because the CRD's rule about changes loops over them
    conditions: Annotated[tuple[Condition, ...], Field(max_length=MAX_CONDITIONS)] = Field(
        default=(), description="Accepted, Scheduled, Running, Stalled, Suspended, Complete, Failed."
    )
    nodes: NodeCounts | None = Field(default=None, description="The number of nodes.")
    network: NetworkStatus | None = Field(default=None, description="The network between the ranks.")
    ranks: RankStatus | None = Field(default=None, description="All ranks.")
    progress: Progress | None = Field(default=None, description="The job's progress.")
    placement: Placement | None = Field(
        default=None, description="Set once muster deleted scheduled pods because not all could be scheduled."
    )
    backend: BackendStatus | None = Field(default=None, description="The status of the job in its backend.")
    restarts: Restarts | None = Field(default=None, description="Set once muster has restarted the job on a cluster.")
    attempt: int = Field(
        default=0,
        description="How often muster has started the ranks; in phase Restarting the number of the coming attempt.",
    )
    start_time: str | None = Field(
        default=None, description="When muster started the ranks (RFC 3339); unset while the job is suspended."
    )
    completion_time: str | None = Field(default=None, description="When the job ended (RFC 3339).")

    def condition(self, kind: str) -> Condition | None:
        """Return the condition of this type; None if it is missing."""
        return next((entry for entry in self.conditions if entry.type == kind), None)

    @property
    def final_condition(self) -> Condition | None:
        """The condition Complete or Failed that is True; None while the job has not ended."""
        return next(
            (entry for entry in self.conditions if entry.type in _FINAL_CONDITIONS and entry.status == "True"), None
        )

    @property
    def is_failing(self) -> bool:
        """Whether the job will be Failed as soon as its remaining pods have stopped."""
        return any(entry.type == "Failed" and entry.reason == STOPPING for entry in self.conditions)

    @property
    def suspension(self) -> Condition | None:
        """The condition Suspended; None if the job was never suspended."""
        return self.condition(SUSPENDED)

    @property
    def is_suspending(self) -> bool:
        """Whether muster is suspending the job: it completes the suspension even if spec.suspend has become false."""
        return self.suspension is not None and self.suspension.reason == SUSPENDING

    @property
    def is_suspended(self) -> bool:
        """Whether the job is suspended."""
        return self.suspension is not None and self.suspension.status == "True"

    @property
    def is_resumed(self) -> bool:
        """Whether the job was suspended and resumed."""
        return self.suspension is not None and self.suspension.reason == RESUMED

    @property
    def was_started(self) -> bool:
        """Whether muster has started the ranks, and has not suspended the job since.

        The count of attempts decides: a user may have removed the start time.
        """
        # The status has the next attempt, and no agent has received its start.
        if self.is_restarting:
            return False
        if self.start_time is not None:
            return True
        if self.attempt == 0 or self.is_suspended:
            return False
        return not self.is_resumed or self.phase not in _PHASES_BEFORE_START

    @property
    def current_attempt(self) -> int:
        """The number of the current attempt, or of the next one if the ranks have yet to start."""
        return max(self.attempt, 1) if self.was_started or self.is_restarting else self.attempt + 1

    @property
    def last_restart(self) -> RestartRecord | None:
        """The failure before the current attempt; None for an attempt that follows no failure."""
        last = None if self.restarts is None or not self.restarts.history else self.restarts.history[-1]
        return last if last is not None and last.attempt == self.attempt - 1 else None

    @property
    def is_restarting(self) -> bool:
        """Whether an attempt has failed and the next one has not started."""
        return self.restarts is not None and self.restarts.is_pending and self.last_restart is not None

    @property
    def was_ever_started(self) -> bool:
        """As `was_started`, and also while the job is between two attempts: its world is fixed, and it is accepted."""
        return self.was_started or self.is_restarting
