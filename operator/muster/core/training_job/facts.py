"""The facts of a job on Amazon SageMaker at one moment, and SageMaker's status values that affect decisions.

Times are Unix seconds: SageMaker's own if it provides them, else the operator's clock.
"""

from dataclasses import dataclass
from enum import StrEnum

from muster.core.facts import AgentFacts
from muster.core.problem import Problem

COMPLETED = "Completed"
FAILED = "Failed"
STOPPED = "Stopped"
STOPPING = "Stopping"
DELETING = "Deleting"
"""TrainingJobStatus (API_DescribeTrainingJob). Any other value, such as InProgress, means that the job is running."""

_FINAL_STATUSES = frozenset((COMPLETED, FAILED, STOPPED))

PENDING = "Pending"
INTERRUPTED = "Interrupted"
RESTARTING = "Restarting"
MAX_RUNTIME_EXCEEDED = "MaxRuntimeExceeded"
MAX_WAIT_TIME_EXCEEDED = "MaxWaitTimeExceeded"
"""SecondaryStatus values with a special meaning."""

_TRAINING_STATUSES = frozenset(("Training", "Uploading", "Updating"))
_STARTING_STATUSES = frozenset(
    (
        "Starting",
        PENDING,
        "LaunchingMLInstances",
        "PreparingTrainingStack",
        "Downloading",
        "DownloadingTrainingImage",
        INTERRUPTED,
        RESTARTING,
    )
)
_STATUSES_WITHOUT_INSTANCES = frozenset(("Starting", PENDING, "LaunchingMLInstances", INTERRUPTED))


@dataclass(frozen=True)
class StatusPeriod:
    """A period in one secondary status; `ended_at` is None for the current period."""

    status: str
    started_at: float
    ended_at: float | None
    message: str


@dataclass(frozen=True)
class FinalMetric:
    """The last value of a metric that SageMaker read from the output."""

    name: str
    value: float
    at: float


@dataclass(frozen=True)
class TrainingJob:
    """A training job in SageMaker's description. `status` and `secondary_status` may have unknown values.

    `started_at` and `ended_at` are the times of the training phase. `instance_type` is None for several instance
    groups.
    """

    name: str
    arn: str
    status: str
    secondary_status: str
    created_at: float
    started_at: float | None = None
    ended_at: float | None = None
    history: tuple[StatusPeriod, ...] = ()
    failure_reason: str | None = None
    billable_seconds: int | None = None
    training_seconds: int | None = None
    image: str | None = None
    instance_type: str | None = None
    instance_count: int | None = None
    metrics: tuple[FinalMetric, ...] = ()

    @property
    def is_over(self) -> bool:
        """Whether the training job has ended. `Stopping` is not an end."""
        return self.status in _FINAL_STATUSES

    @property
    def is_ending(self) -> bool:
        """Whether the training job has ended, or a stop or deletion was requested."""
        return self.is_over or self.status in (STOPPING, DELETING)

    @property
    def has_instances(self) -> bool:
        """Whether all instances of the training job were available at some time."""
        return any(period.status not in _STATUSES_WITHOUT_INSTANCES for period in self._active_history)

    @property
    def has_trained(self) -> bool:
        """Whether the containers have started.

        TrainingStartTime alone does not show this, because the data downloads come after it.
        """
        if self.is_running or self.status == COMPLETED:
            return True
        has_begun = self.started_at is not None
        return any(
            period.status in _TRAINING_STATUSES or (has_begun and period.status not in _STARTING_STATUSES)
            for period in self._active_history
        )

    @property
    def is_running(self) -> bool:
        """Whether the containers run now. An unknown status counts as running after TrainingStartTime."""
        if self.is_ending:
            return False
        if self.secondary_status in _STARTING_STATUSES:
            return False
        # For an unknown value, rely on TrainingStartTime.
        return self.secondary_status in _TRAINING_STATUSES or self.started_at is not None

    @property
    def _active_history(self) -> tuple[StatusPeriod, ...]:
        ends = (*_FINAL_STATUSES, STOPPING, MAX_RUNTIME_EXCEEDED, MAX_WAIT_TIME_EXCEEDED)
        current = StatusPeriod(self.secondary_status, self.created_at, None, "")
        return tuple(period for period in (*self.history, current) if period.status not in ends)


class FailureKind(StrEnum):
    """Why a request to SageMaker failed."""

    CAPACITY = "Capacity"  # a quota is exceeded, or no such instances are available
    REFUSED = "Refused"  # AWS rejects the request as invalid
    ACCESS = "Access"  # missing, invalid or expired credentials, or missing permissions
    SERVICE = "Service"  # no response, or throttling


REFUSALS = (FailureKind.ACCESS, FailureKind.REFUSED)
"""Kinds of failures where AWS rejected the request."""


@dataclass(frozen=True)
class RequestFailure:
    """A request that failed `tries` times in a row, the last time at `at`. `problem` describes the failure.

    `refused_seconds` is how long AWS has rejected all tries. See `refusal_streak.py`.
    """

    kind: FailureKind
    problem: Problem
    at: float
    tries: int = 1
    refused_seconds: float = 0.0


@dataclass(frozen=True)
class Location:
    """The region of a job's training jobs; `assume_role_arn` is the role that muster assumes there, if any."""

    region: str
    assume_role_arn: str | None = None


@dataclass(frozen=True)
class TrainingFacts:
    """All facts of a job, as its backend collects them.

    `training` is the training job of the status' attempt, or of `unrecorded_attempt` if the status has none.
    `observed_location` is the location of the observation. If the observation failed, `observation_failure` is the
    cause and `training` is None. `refresh_failure` is why the observation may be outdated. `search_failure` is why
    muster could not check whether another training job of the job runs. `request_failure` is why the last action
    failed. `is_request_unsent` is set if muster never sent the request for the status' training job. `refusal` is why
    the spec can't run. `name_conflict` is set if another owner has a training job with this name. `has_finalizer` is
    set if the resource has muster's finalizer. `agents` are the ranks' reports; `has_all_reports` is set once they are
    complete, or once muster no longer waits for missing ones. `operator_started_at` is when this operator started:
    requests of an earlier operator may still take effect after that. `remaining_names` are the names of a finished
    job's training jobs that are not deleted yet. `warnings` are the warnings of JobFacts.
    """

    created_at: float
    location: Location
    heartbeat_seconds: float
    operator_started_at: float
    training: TrainingJob | None = None
    observation_failure: RequestFailure | None = None
    refresh_failure: RequestFailure | None = None
    request_failure: RequestFailure | None = None
    refusal: Problem | None = None
    name_conflict: Problem | None = None
    unrecorded_attempt: int | None = None
    observed_location: Location | None = None
    search_failure: RequestFailure | None = None
    is_request_unsent: bool = False
    has_finalizer: bool = False
    agents: tuple[AgentFacts, ...] = ()
    has_all_reports: bool = True
    remaining_names: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
