"""Decide which training job of a job is current, and whether it needs another one.

An attempt is one start of all ranks. The status records its number before the request to SageMaker.
"""

from dataclasses import dataclass, replace

from muster.api.spec.job import Job
from muster.api.status.sagemaker import SageMakerStatus
from muster.api.status.status import Status
from muster.api.timestamps import format_timestamp, parse_timestamp
from muster.core.training_job.backoff import compute_capacity_backoff, compute_retry_time
from muster.core.training_job.ends import NextStep, TrainingFailure, classify_training_failure
from muster.core.training_job.facts import COMPLETED, FailureKind, TrainingFacts

CREATION_SECONDS = 30.0
"""A request may create a training job up to this long after it was sent, or after its sender ended."""

_KINDS_WITHOUT_TRAINING_JOB = (FailureKind.CAPACITY, FailureKind.REFUSED, FailureKind.ACCESS)


@dataclass(frozen=True)
class CapacityWait:
    """A wait because SageMaker lacks capacity. `tries` requests in a row have failed.

    muster sends the next request at `until` (Unix seconds).
    """

    attempt: int
    reason: str
    message: str
    tries: int
    until: float


@dataclass(frozen=True)
class AttemptState:
    """The current attempt. If `is_next` is set, it is the next attempt: muster has not requested its training job yet.

    `restarts` is the number of restarts by failurePolicy. `last_failure` is the end of the previous attempt, if any.
    `waiting` is the last wait for capacity, which may be over. `due_at` is the earliest time of the request (Unix
    seconds; 0 means now).
    """

    attempt: int
    is_next: bool
    restarts: int = 0
    last_failure: TrainingFailure | None = None
    waiting: CapacityWait | None = None
    due_at: float = 0.0


def get_sagemaker_status(previous: Status) -> SageMakerStatus | None:
    """Return the record of the training job in the status; None if there is none."""
    return None if previous.backend is None else previous.backend.sagemaker


def find_requested_attempt(previous: Status) -> int | None:
    """Return the attempt that may have a training job; None if muster has requested none since the last resumption."""
    return previous.current_attempt if previous.was_started else None


def add_unrecorded_attempt(previous: Status, facts: TrainingFacts) -> Status:
    """Add the attempt of a running training job to `previous` if a user has removed its record from the status."""
    if facts.unrecorded_attempt is None or facts.training is None:
        return previous
    return previous.model_copy(
        update={"attempt": facts.unrecorded_attempt, "start_time": format_timestamp(facts.training.created_at)}
    )


def find_attempt_state(job: Job, previous: Status, facts: TrainingFacts, now: float) -> AttemptState:
    """Return the job's current or next attempt at `now` (Unix seconds)."""
    record, attempt = get_sagemaker_status(previous), previous.current_attempt
    if not previous.was_started:
        # Attempts before a suspension don't count.
        return _set_due_time(job, facts, AttemptState(attempt, is_next=True))
    restarts = 0 if record is None else record.restarts
    waiting = _find_capacity_wait(job, record, attempt, facts)
    training = facts.training
    # The status has the attempt, but its training job does not exist: the operator may have been killed meanwhile.
    if training is None:
        return _set_due_time(job, facts, AttemptState(attempt, is_next=False, restarts=restarts, waiting=waiting))
    current = AttemptState(
        attempt, is_next=False, restarts=restarts, waiting=None if training.has_instances else waiting
    )
    if not training.is_over or training.status == COMPLETED or not facts.has_all_reports:
        return current
    end = classify_training_failure(training)
    if end.next_step is NextStep.RETRY:
        retry = _find_wait_after_end(job, waiting, attempt, end, now)
        return _set_due_time(job, facts, AttemptState(attempt + 1, True, restarts, end, retry))
    max_restarts = 0 if job.spec.failure_policy is None else job.spec.failure_policy.max_restarts
    if end.next_step is NextStep.RESTART and restarts < max_restarts:
        return _set_due_time(job, facts, AttemptState(attempt + 1, True, restarts + 1, end))
    return current


def is_training_job_lost(previous: Status, facts: TrainingFacts) -> bool:
    """Whether SageMaker no longer has a training job that it had created."""
    record = get_sagemaker_status(previous)
    return (
        facts.training is None and facts.observation_failure is None and record is not None and record.arn is not None
    )


def find_creation_deadline(previous: Status, facts: TrainingFacts) -> float:
    """Return the time until which a requested training job may still appear (Unix seconds); 0 if none can appear."""
    record, request_failure = get_sagemaker_status(previous), facts.request_failure
    if record is None or record.arn is not None or facts.training is not None:
        return 0.0
    # The name belongs to another training job, or no request was sent.
    if facts.name_conflict is not None or facts.is_request_unsent:
        return 0.0
    # SageMaker refused the request.
    if request_failure is not None and request_failure.kind in _KINDS_WITHOUT_TRAINING_JOB:
        return 0.0
    return max(parse_timestamp(record.tried_at), facts.operator_started_at) + CREATION_SECONDS


def _find_capacity_wait(
    job: Job, record: SageMakerStatus | None, attempt: int, facts: TrainingFacts
) -> CapacityWait | None:
    retry = None if record is None else record.retry
    last = None
    if retry is not None:
        last = CapacityWait(retry.attempt, retry.reason, retry.message, retry.tries, parse_timestamp(retry.until))
    request_failure = facts.request_failure
    if request_failure is None or request_failure.kind is not FailureKind.CAPACITY:
        return last
    # The status already has this failure: the request was sent before the retry time.
    if last is not None and last.until > request_failure.at:
        return last
    tries, problem = 1 if last is None else last.tries + 1, request_failure.problem
    until = request_failure.at + compute_capacity_backoff(job.metadata.uid, tries)
    return CapacityWait(attempt, problem.reason, problem.message, tries, until)


def _find_wait_after_end(
    job: Job, last: CapacityWait | None, attempt: int, end: TrainingFailure, now: float
) -> CapacityWait:
    # The status already has this failure.
    if last is not None and (last.attempt, last.reason) == (attempt, end.reason):
        return last
    tries = 1 if last is None else last.tries + 1
    return CapacityWait(
        attempt, end.reason, end.message, tries, now + compute_capacity_backoff(job.metadata.uid, tries)
    )


def _set_due_time(job: Job, facts: TrainingFacts, attempt_state: AttemptState) -> AttemptState:
    due_at = 0.0 if attempt_state.waiting is None else attempt_state.waiting.until
    request_failure = facts.request_failure
    if request_failure is not None and request_failure.kind is not FailureKind.CAPACITY:
        due_at = max(due_at, compute_retry_time(job.metadata.uid, request_failure))
    return replace(attempt_state, due_at=due_at)
