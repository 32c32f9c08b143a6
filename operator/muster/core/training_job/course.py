"""Which training job of a job is the present one, and whether another one is to be made: attempts are counted.

An attempt is a start of the gang, with the same number. It stands in the status before SageMaker hears of it.
"""

from dataclasses import dataclass, replace

from muster.api.spec.job import Job
from muster.api.status.sagemaker import SageMakerStatus
from muster.api.status.status import Status
from muster.api.timestamps import from_text, to_seconds
from muster.core.training_job.backoff import capacity_backoff, retry_at
from muster.core.training_job.ends import BadEnd, Sequel, bad_end
from muster.core.training_job.facts import COMPLETED, FailureKind, TrainingFacts

CREATION_SECONDS = 30.0
"""So long after it was sent, or its sender's end, a request to create comes to nothing: its time-out is shorter."""

_UNSENT = (FailureKind.CAPACITY, FailureKind.REFUSED, FailureKind.ACCESS)


@dataclass(frozen=True)
class Waiting:
    """Want of capacity for an attempt: `tries` times in a row, asked again at `until` (Unix seconds)."""

    attempt: int
    reason: str
    message: str
    tries: int
    until: float


@dataclass(frozen=True)
class Course:
    """`attempt` is the number of the present training job or, where `is_next`, of the one to be made after it.

    `restarts` counts those that failurePolicy allowed. `ended` is how the one before the next ended, if any.
    `waiting` is want of capacity, the last time; it may be past. `due_at` is when SageMaker may be asked to make one
    (Unix seconds; 0: now).
    """

    attempt: int
    is_next: bool
    restarts: int = 0
    ended: BadEnd | None = None
    waiting: Waiting | None = None
    due_at: float = 0.0


def sagemaker_status_of(previous: Status) -> SageMakerStatus | None:
    """What the status tells of the job's training job."""
    return None if previous.backend is None else previous.backend.sagemaker


def attempt_looked_at(previous: Status) -> int | None:
    """The attempt whose training job there may be; None for a job that has had none since it was last resumed."""
    return previous.current_attempt if previous.was_started else None


def as_found(previous: Status, facts: TrainingFacts) -> Status:
    """`previous`, or what it would say if the record of the running training job had not been removed."""
    if facts.unrecorded_attempt is None or facts.training is None:
        return previous
    return previous.model_copy(
        update={"attempt": facts.unrecorded_attempt, "start_time": to_seconds(facts.training.created_at)}
    )


def course_of(job: Job, previous: Status, facts: TrainingFacts, now: float) -> Course:
    """Where the job stands with its attempts at `now` (Unix seconds)."""
    record, attempt = sagemaker_status_of(previous), previous.current_attempt
    if not previous.was_started:
        # What was before the suspension counts no more.
        return _with_due(job, facts, Course(attempt, is_next=True))
    restarts = 0 if record is None else record.restarts
    waiting = _waiting(job, record, attempt, facts)
    training = facts.training
    # It was decided on and is not there: the operator may have been killed before it asked.
    if training is None:
        return _with_due(job, facts, Course(attempt, is_next=False, restarts=restarts, waiting=waiting))
    here = Course(attempt, is_next=False, restarts=restarts, waiting=None if training.has_instances else waiting)
    if not training.is_over or training.status == COMPLETED or not facts.is_heard_out:
        return here
    end = bad_end(training)
    if end.sequel is Sequel.RETRY:
        retry = _once_more(job, waiting, attempt, end, now)
        return _with_due(job, facts, Course(attempt + 1, True, restarts, end, retry))
    allowed = 0 if job.spec.failure_policy is None else job.spec.failure_policy.max_restarts
    if end.sequel is Sequel.RESTART and restarts < allowed:
        return _with_due(job, facts, Course(attempt + 1, True, restarts + 1, end))
    return here


def is_lost(previous: Status, facts: TrainingFacts) -> bool:
    """Whether the training job was there and its record was deleted since."""
    record = sagemaker_status_of(previous)
    return facts.training is None and facts.blind is None and record is not None and record.arn is not None


def arrives_until(previous: Status, facts: TrainingFacts) -> float:
    """Until when a training job that isn't there may yet come to be (Unix seconds): its creation was asked for."""
    record, request_failure = sagemaker_status_of(previous), facts.request_failure
    if record is None or record.arn is not None or facts.training is not None:
        return 0.0
    # None can come to be beside it, or without a request.
    if facts.taken is not None or facts.is_unsent:
        return 0.0
    # SageMaker refused, or was not asked yet.
    if request_failure is not None and request_failure.kind in _UNSENT:
        return 0.0
    return max(from_text(record.tried_at), facts.looking_since) + CREATION_SECONDS


def _waiting(job: Job, record: SageMakerStatus | None, attempt: int, facts: TrainingFacts) -> Waiting | None:
    retry = None if record is None else record.retry
    last = None
    if retry is not None:
        last = Waiting(retry.attempt, retry.reason, retry.message, retry.tries, from_text(retry.until))
    request_failure = facts.request_failure
    if request_failure is None or request_failure.kind is not FailureKind.CAPACITY:
        return last
    # The status has it already: do not ask before the time that it gives.
    if last is not None and last.until > request_failure.at:
        return last
    tries, problem = 1 if last is None else last.tries + 1, request_failure.problem
    until = request_failure.at + capacity_backoff(job.metadata.uid, tries)
    return Waiting(attempt, problem.reason, problem.message, tries, until)


def _once_more(job: Job, last: Waiting | None, attempt: int, end: BadEnd, now: float) -> Waiting:
    # The status knows of it already.
    if last is not None and (last.attempt, last.reason) == (attempt, end.reason):
        return last
    tries = 1 if last is None else last.tries + 1
    return Waiting(attempt, end.reason, end.message, tries, now + capacity_backoff(job.metadata.uid, tries))


def _with_due(job: Job, facts: TrainingFacts, course: Course) -> Course:
    due_at = 0.0 if course.waiting is None else course.waiting.until
    request_failure = facts.request_failure
    if request_failure is not None and request_failure.kind is not FailureKind.CAPACITY:
        due_at = max(due_at, retry_at(job.metadata.uid, request_failure))
    return replace(course, due_at=due_at)
