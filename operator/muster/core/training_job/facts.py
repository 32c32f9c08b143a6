"""What is known of a job on Amazon SageMaker at one moment, and SageMaker's words as far as they decide anything.

Times are Unix seconds: SageMaker's own where it gives them, the operator's clock for the rest.
"""

from dataclasses import dataclass
from enum import StrEnum

from muster.core.facts import AgentFacts, Problem

COMPLETED = "Completed"
FAILED = "Failed"
STOPPED = "Stopped"
STOPPING = "Stopping"
DELETING = "Deleting"
"""TrainingJobStatus (API_DescribeTrainingJob). Any other word, InProgress or one to come, is a training job at work."""

_OVER = frozenset((COMPLETED, FAILED, STOPPED))

PENDING = "Pending"
INTERRUPTED = "Interrupted"
RESTARTING = "Restarting"
MAX_RUNTIME_EXCEEDED = "MaxRuntimeExceeded"
MAX_WAIT_TIME_EXCEEDED = "MaxWaitTimeExceeded"
"""SecondaryStatus, those that mean something of their own."""

_AT_WORK = frozenset(("Training", "Uploading", "Updating"))
_BEFORE_WORK = frozenset(
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
_WITHOUT_INSTANCES = frozenset(("Starting", PENDING, "LaunchingMLInstances", INTERRUPTED))


@dataclass(frozen=True)
class Span:
    """A secondary status, from when until when; `ended_at` None: until now."""

    status: str
    started_at: float
    ended_at: float | None
    message: str


@dataclass(frozen=True)
class FinalMetric:
    """The last value of a metric that SageMaker read from the output by itself."""

    name: str
    value: float
    at: float


@dataclass(frozen=True)
class TrainingJob:
    """A training job as SageMaker describes it: `status` and `secondary_status` are its words, known or not.

    `started_at` and `ended_at` are its training's. `instance_type` is None where it has several groups of instances.
    """

    name: str
    arn: str
    status: str
    secondary_status: str
    created_at: float
    started_at: float | None = None
    ended_at: float | None = None
    history: tuple[Span, ...] = ()
    failure_reason: str | None = None
    billable_seconds: int | None = None
    training_seconds: int | None = None
    image: str | None = None
    instance_type: str | None = None
    instance_count: int | None = None
    metrics: tuple[FinalMetric, ...] = ()

    @property
    def is_over(self) -> bool:
        """Whether nothing of it runs, or ever will; `Stopping` is not an end."""
        return self.status in _OVER

    @property
    def is_asked_to_end(self) -> bool:
        """Whether there is nothing left to ask of it."""
        return self.is_over or self.status in (STOPPING, DELETING)

    @property
    def has_instances(self) -> bool:
        """Whether it has got all of its instances, ever."""
        return any(span.status not in _WITHOUT_INSTANCES for span in self._way)

    @property
    def has_trained(self) -> bool:
        """Whether its containers have begun, ever. TrainingStartTime tells less: data is fetched from then on."""
        if self.is_at_work or self.status == COMPLETED:
            return True
        has_begun = self.started_at is not None
        return any(span.status in _AT_WORK or (has_begun and span.status not in _BEFORE_WORK) for span in self._way)

    @property
    def is_at_work(self) -> bool:
        """Whether its containers run now, as far as its words can be understood."""
        if self.is_asked_to_end:
            return False
        if self.secondary_status in _BEFORE_WORK:
            return False
        # A word that is not known yet: training has begun when SageMaker says since when.
        return self.secondary_status in _AT_WORK or self.started_at is not None

    @property
    def _way(self) -> tuple[Span, ...]:
        ends = (*_OVER, STOPPING, MAX_RUNTIME_EXCEEDED, MAX_WAIT_TIME_EXCEEDED)
        now = Span(self.secondary_status, self.created_at, None, "")
        return tuple(span for span in (*self.history, now) if span.status not in ends)


class FailureKind(StrEnum):
    """What kept muster from what it wanted of SageMaker."""

    CAPACITY = "Capacity"  # a limit is reached, or there are no such instances now
    REFUSED = "Refused"  # what is asked for can't be had, however often
    ACCESS = "Access"  # no credentials, none that count any more, or not the right
    SERVICE = "Service"  # no answer, or a request to come later


REFUSALS = (FailureKind.ACCESS, FailureKind.REFUSED)
"""AWS has looked at the request, and said no."""


@dataclass(frozen=True)
class RequestFailure:
    """What a request came to, `tries` times in a row, last at `at`. `problem` says it in words.

    `refused_seconds` is for how long tries have been refused in a row, and none has succeeded (`refused_row.py`).
    """

    kind: FailureKind
    problem: Problem
    at: float
    tries: int = 1
    refused_seconds: float = 0.0


@dataclass(frozen=True)
class Location:
    """Where a job's training jobs are: `assume_role_arn` is the role by which muster acts there, None its own."""

    region: str
    assume_role_arn: str | None = None


@dataclass(frozen=True)
class TrainingFacts:
    """All that is known of a job, as its backend gathers it.

    `training` is the training job of the attempt that the status tells of, or of `found` where that tells of none, and
    was seen at `seen_at`; None: there is none. `blind` is why nothing is known of it yet or any more: then `training`
    is None for that reason. `stale` is why what is known may be old. `unclear` is why it isn't known whether another
    training job of the job's runs, once that is asked. `request_failure` is what kept the last action from being done.
    `is_unsent`: the training job that the status tells of was withdrawn before SageMaker was asked for it.
    `refusal` is why what the spec asks for may not be made. `taken` says that the training job of this name is somebody
    else's. `is_held`: the resource bears muster's finalizer. `agents` is what ranks said; `is_heard_out` that no more
    is to come, or has been waited for long enough. `looking_since` is when this operator began: what one before it
    asked for may only now be carried out. `remains` are the names of the training jobs of a job that is over, as far as
    SageMaker was not asked to forget them. `remarks` are those of JobFacts.
    """

    created_at: float
    location: Location
    heartbeat_seconds: float
    looking_since: float
    training: TrainingJob | None = None
    blind: RequestFailure | None = None
    stale: RequestFailure | None = None
    request_failure: RequestFailure | None = None
    refusal: Problem | None = None
    taken: Problem | None = None
    unrecorded_attempt: int | None = None
    seen_at: Location | None = None
    unclear: RequestFailure | None = None
    is_unsent: bool = False
    is_held: bool = False
    agents: tuple[AgentFacts, ...] = ()
    is_heard_out: bool = True
    remains: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
