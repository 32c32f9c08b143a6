"""Decide whether to create, stop or delete a training job now."""

from dataclasses import dataclass

from muster.api.spec.job import Job
from muster.api.status.status import Status
from muster.core.actions import DeleteResource
from muster.core.outcome import Outcome, Verdict
from muster.core.training_job.attempt_state import find_creation_deadline
from muster.core.training_job.backoff import compute_retry_time
from muster.core.training_job.facts import Location, RequestFailure, TrainingFacts
from muster.core.training_job.state import TrainingState


@dataclass(frozen=True)
class AddFinalizer:
    """Add muster's finalizer, so that Kubernetes deletes the resource only after its training job has ended."""


@dataclass(frozen=True)
class RemoveTrainingFinalizer:
    """Remove the finalizer, because no training job of the resource runs."""


@dataclass(frozen=True)
class CreateTrainingJob:
    """Create the training job of this attempt, or adopt it if it already exists and belongs to the job."""

    attempt: int


@dataclass(frozen=True)
class StopTrainingJob:
    """Stop the training job of this attempt: SageMaker sends SIGTERM and allows 120 s (API_StopTrainingJob)."""

    attempt: int
    location: Location


@dataclass(frozen=True)
class DeleteTrainingJob:
    """Delete a finished training job from SageMaker."""

    name: str


TrainingAction = (
    AddFinalizer | RemoveTrainingFinalizer | CreateTrainingJob | StopTrainingJob | DeleteTrainingJob | DeleteResource
)


def decide_training_job(job: Job, state: TrainingState, outcome: Outcome, now: float) -> tuple[TrainingAction, ...]:
    """Return the actions that the job needs at `now` (Unix seconds); none if it is in the desired state.

    Once the facts show the actions applied, the same decision returns no new actions.
    """
    facts, attempt_state = state.facts, state.attempt_state
    # SageMaker has not described the training job, so do nothing.
    if facts.observation_failure is not None:
        return ()
    if outcome.is_decided:
        return _end_training(job, facts, outcome, now)
    # The training job exists or was requested.
    if facts.training is not None and not attempt_state.is_next:
        # A user may have removed the finalizer: add it again.
        return () if facts.has_finalizer else (AddFinalizer(),)
    # Don't repeat a refused request until the spec changes.
    if facts.refusal is not None or facts.name_conflict is not None:
        return ()
    # The finalizer comes first, so that a deleted resource can't leave its training job running.
    if not facts.has_finalizer:
        return (AddFinalizer(),)
    return () if now < attempt_state.due_at else (CreateTrainingJob(attempt_state.attempt),)


def find_training_requeue_time(
    job: Job, previous: Status, state: TrainingState, outcome: Outcome, now: float
) -> float | None:
    """Return when the decision or the status may next change without a new event (Unix seconds); None if never."""
    facts, attempt_state = state.facts, state.attempt_state
    # The job was resumed during its suspension: complete the suspension first.
    if outcome.verdict is Verdict.SUSPENDED and outcome.is_idle and not job.spec.suspend:
        return now
    times = [state.nodes.find_silence_time(node) for node in state.nodes.nodes]
    if facts.observation_failure is not None:
        times.append(compute_retry_time(job.metadata.uid, facts.observation_failure))
    if outcome.is_decided:
        times.append(outcome.expires_at)
        times += [
            _find_retry_time(job, failure)
            for failure in (facts.request_failure, facts.search_failure)
            if failure is not None
        ]
        times.append(None if outcome.is_idle else find_creation_deadline(previous, facts))
    else:
        times.append(outcome.active_deadline)
        times.append(attempt_state.due_at if attempt_state.is_next or facts.training is None else None)
    return min((at for at in times if at is not None and at > now), default=None)


def _end_training(job: Job, facts: TrainingFacts, outcome: Outcome, now: float) -> tuple[TrainingAction, ...]:
    training = facts.training
    if training is not None and not training.is_ending:
        location = facts.observed_location or facts.location
        return () if _waits_for_retry(job, facts, now) else (StopTrainingJob(outcome.attempt, location),)
    # A training job that is still stopping has not ended.
    if not outcome.is_idle or (training is not None and not training.is_over):
        return ()
    # Remove the finalizer now, because the status already has the result.
    if facts.has_finalizer:
        return (
            ()
            if facts.search_failure is not None and now < _find_retry_time(job, facts.search_failure)
            else (RemoveTrainingFinalizer(),)
        )
    at = outcome.expires_at
    if at is None or now < at or _waits_for_retry(job, facts, now):
        return ()
    return tuple(DeleteTrainingJob(name) for name in facts.remaining_names) or (DeleteResource(),)


def _waits_for_retry(job: Job, facts: TrainingFacts, now: float) -> bool:
    """Whether to wait for a retry because the last request failed."""
    return facts.request_failure is not None and now < _find_retry_time(job, facts.request_failure)


def _find_retry_time(job: Job, request_failure: RequestFailure) -> float:
    return compute_retry_time(job.metadata.uid, request_failure)
