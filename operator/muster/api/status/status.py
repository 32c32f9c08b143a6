"""The types of the resource's status, which muster writes."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated

from pydantic import Field

from muster.api.document import JSON
from muster.api.spec.model import Model
from muster.api.status.elastic import ElasticStatus
from muster.api.status.goodput import Goodput
from muster.api.status.hang import HangRecord
from muster.api.status.network import NetworkStatus
from muster.api.status.progress import Progress
from muster.api.status.restarts import RestartRecord, RestartRequest, Restarts
from muster.api.status.rules import MAX_CONDITIONS
from muster.api.status.sagemaker import BackendStatus
from muster.api.status.source import SourceStatus
from muster.api.status.spares import SpareStatus
from muster.api.status.stragglers import StragglerRecord

SUSPENDED = "Suspended"
SUSPENDING = "Suspending"
RESUMED = "Resumed"
"""The reasons of the condition Suspended: the job is suspended, is being suspended, or was resumed."""

STOPPING = "Stopping"
"""The reason of the condition Complete or Failed while the job's result is known and its pods are still stopping."""

RESTARTING = "Restarting"
"""The phase between the end of an attempt and the start of the next one, after a failure or a request."""

REFUSED = "Refused"
"""The phase of a job that muster does not start until the user corrects its spec."""

_FINAL_CONDITIONS = ("Complete", "Failed")
_PHASES_BEFORE_START = ("Pending", "Queued", "Starting", REFUSED)


DEFAULT_STATUS: Mapping[str, JSON] = MappingProxyType({"observedGeneration": -1})
"""The status of a resource for which muster has written none yet.

The API server adds it (`crd.py`). Without it, kstatus would take a new job for a finished one.
"""


class Condition(Model):
    """A Kubernetes condition (metav1.Condition)."""

    type: str = Field(
        description="The condition's type: Accepted, Scheduled, Running, Reconciling, Stalled, Suspended, Complete "
        "or Failed.",
        max_length=64,
    )
    status: str = Field(description="The condition's status: True, False or Unknown.", max_length=7)
    reason: str = Field(description="The reason of the status, as one CamelCase word.")
    message: str = Field(default="", description="The reason as a sentence.")
    last_transition_time: str = Field(description="The time when the status last changed (RFC 3339).")
    observed_generation: int = Field(
        default=0, description="The metadata.generation that muster had observed when it set the condition."
    )


class NodeCounts(Model):
    """The number of nodes."""

    desired: int = Field(description="The number of nodes in the spec.")
    ready: int = Field(description="The number of nodes whose agent is ready or runs the ranks.")


class StateRange(Model):
    """The ranks in one state."""

    state: str = Field(description="The state: Pending, Starting, Running, Succeeded, Failed, Stopped or Unknown.")
    count: int = Field(description="The number of ranks.")
    ranks: str = Field(description="The ranks, as ranges: 0-12,14-31. Cut off with an ellipsis after 512 characters.")


class RankDetail(Model):
    """A rank with a problem or another notable state."""

    rank: int = Field(description="The global rank.")
    node: int = Field(description="The node, as in the name of its pod.")
    pod: str | None = Field(default=None, description="The node's pod, on a cluster.")
    node_name: str | None = Field(default=None, description="The Kubernetes node that the pod runs on.")
    state: str = Field(description="The rank's state.")
    pid: int | None = Field(default=None, description="The rank's process id on its node.")
    exit_code: int | None = Field(default=None, description="The rank's exit code; unset if a signal ended the rank.")
    signal: int | None = Field(default=None, description="The number of the signal that ended the rank.")
    reason: str = Field(description="The reason of the state, as one CamelCase word.")
    message: str = Field(default="", description="The rank's last line of output, or another detail.")
    step: int | None = Field(default=None, description="The number of optimizer steps that the rank has completed.")
    activity: str | None = Field(default=None, description="The rank's current activity: all_reduce, backward, ...")
    last_collective: str | None = Field(
        default=None,
        description="The collective that the rank entered last when it hung, if torch's flight recorder is on.",
    )
    at: str | None = Field(default=None, description="The time when the rank ended (RFC 3339).")


class StepRange(Model):
    """Ranks that have completed the same number of optimizer steps."""

    step: int = Field(description="The number of completed optimizer steps.")
    ranks: str = Field(description="The ranks, as ranges: 0-12,14-31. Cut off with an ellipsis after 512 characters.")


class RankStatus(Model):
    """The ranks of the job."""

    world: int = Field(description="The number of the job's ranks.")
    running: int = Field(description="The number of running ranks.")
    ready: str = Field(description="The running ranks and all ranks, for the column RANKS: 31/32.")
    by_state: tuple[StateRange, ...] = Field(default=(), description="The ranks by state. Every rank is in one entry.")
    by_step: tuple[StepRange, ...] = Field(
        default=(), description="The ranks by completed steps: the 16 slowest groups, slowest first."
    )
    details: tuple[RankDetail, ...] = Field(
        default=(), description="At most 16 ranks with a problem or another notable state, first failure first."
    )


class Placement(Model):
    """The deletions of the job's scheduled pods because other pods of the job could not be scheduled."""

    releases: int = Field(description="The number of times that muster deleted the pods.", ge=1, le=1_000_000)
    replacement: int = Field(
        description="The lowest replacement number of pods that muster has not deleted. A node's first pod has the "
        "replacement number 0, the pod that replaces it 1, and so on.",
        ge=0,
        le=1_000_000,
    )
    released_at: str = Field(description="The time of the last deletion (RFC 3339).")


class Status(Model):
    """The observed state of the job."""

    observed_generation: int = Field(
        default=0, description="The metadata.generation that muster had observed when it wrote the status."
    )
    phase: str = Field(
        default="Pending",
        description="The job's phase: Pending, Queued, Starting, Running, Restarting, Suspended, Stopping, "
        "Refused, Succeeded or Failed.",
    )
    message: str = Field(
        default="",
        description="The job's current activity, or the rank that failed first and its error, as a sentence.",
    )
    # The list is bounded because CEL rules of the CRD loop over it.
    conditions: Annotated[tuple[Condition, ...], Field(max_length=MAX_CONDITIONS)] = Field(
        default=(),
        description="The conditions Accepted, Scheduled, Running, Reconciling, Stalled, Suspended, Complete and "
        "Failed.",
    )
    nodes: NodeCounts | None = Field(default=None, description="The number of nodes.")
    members: str | None = Field(
        default=None,
        description="The nodes that run the ranks of the attempt, in the order of their node ranks, as ranges: 0-1,3. "
        "Unset for a job that has neither spares nor elastic.",
        max_length=65536,
    )
    spares: SpareStatus | None = Field(default=None, description="The hot spares; unset if the job has none.")
    elastic: ElasticStatus | None = Field(default=None, description="The size of an elastic job; unset for others.")
    network: NetworkStatus | None = Field(default=None, description="The network between the ranks.")
    ranks: RankStatus | None = Field(default=None, description="The ranks of the job.")
    progress: Progress | None = Field(default=None, description="The job's progress.")
    hang: HangRecord | None = Field(
        default=None,
        description="The ranks that run but complete no optimizer steps, or that hung when muster stopped them; unset "
        "if no rank hangs.",
    )
    stragglers: StragglerRecord | None = Field(
        default=None,
        description="The ranks that are slower than the others, which wait for them; unset if there are none, and on "
        "SageMaker.",
    )
    placement: Placement | None = Field(
        default=None,
        description="The deletions of scheduled pods because other pods could not be scheduled; unset if none.",
    )
    backend: BackendStatus | None = Field(default=None, description="The status of the job in its backend.")
    goodput: Goodput | None = Field(
        default=None,
        description="How much of the job's time was productive; unset before a node is scheduled, and on SageMaker.",
    )
    restarts: Restarts | None = Field(
        default=None, description="The restarts of the job; unset if there was none, and on SageMaker."
    )
    restart_request: RestartRequest | None = Field(
        default=None,
        description="The last restart that a user requested, or that muster began to change the number of nodes; "
        "unset if there was none.",
    )
    shard: int | None = Field(
        default=None,
        description="The shard of the operator that runs the job; unset for the first one.",
        ge=1,
    )
    source: SourceStatus | None = Field(
        default=None,
        description="The edited code from `muster rerun` that the ranks of the current attempt run; unset while they "
        "run the code of the spec.",
    )
    attempt: int = Field(
        default=0,
        description="The number of times that muster has started the ranks. In phase Restarting: the number of the "
        "next attempt.",
    )
    start_time: str | None = Field(
        default=None, description="The time when muster started the ranks (RFC 3339); unset while the job is suspended."
    )
    completion_time: str | None = Field(default=None, description="The time when the job ended (RFC 3339).")

    def find_condition(self, condition_type: str) -> Condition | None:
        """Return the condition of this type; None if it is missing."""
        return next((entry for entry in self.conditions if entry.type == condition_type), None)

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
    def suspended_condition(self) -> Condition | None:
        """The condition Suspended; None if the job was never suspended."""
        return self.find_condition(SUSPENDED)

    @property
    def is_suspending(self) -> bool:
        """Whether muster is suspending the job. muster completes a suspension even if spec.suspend becomes false."""
        return self.suspended_condition is not None and self.suspended_condition.reason == SUSPENDING

    @property
    def is_suspended(self) -> bool:
        """Whether the job is suspended."""
        return self.suspended_condition is not None and self.suspended_condition.status == "True"

    @property
    def is_resumed(self) -> bool:
        """Whether the job was suspended and resumed."""
        return self.suspended_condition is not None and self.suspended_condition.reason == RESUMED

    @property
    def was_started(self) -> bool:
        """Whether muster has started the ranks and has not suspended the job since then.

        This depends on the number of attempts, because a user may have removed the start time.
        """
        # The status has the number of the next attempt, which no agent has started.
        if self.is_restarting:
            return False
        if self.start_time is not None:
            return True
        if self.attempt == 0 or self.is_suspended:
            return False
        return not self.is_resumed or self.phase not in _PHASES_BEFORE_START

    @property
    def current_attempt(self) -> int:
        """The number of the current attempt, or of the next attempt if the ranks have not started."""
        return max(self.attempt, 1) if self.was_started or self.is_restarting else self.attempt + 1

    @property
    def last_restart(self) -> RestartRecord | None:
        """The failure or request before the current attempt; None for an attempt that follows no other one."""
        last = None if self.restarts is None or not self.restarts.history else self.restarts.history[-1]
        return last if last is not None and last.attempt == self.attempt - 1 else None

    @property
    def is_restarting(self) -> bool:
        """Whether an attempt has failed or was stopped for a restart, and the next attempt has not started."""
        return self.restarts is not None and self.restarts.is_pending and self.last_restart is not None

    @property
    def is_stopping_for_restart(self) -> bool:
        """Whether muster stops the ranks because a user has requested a restart."""
        return self.restart_request is not None and self.restart_request.is_pending

    @property
    def was_ever_started(self) -> bool:
        """Whether the ranks have started or are between two attempts, so that the world size is fixed."""
        return self.was_started or self.is_restarting
