"""What has to be done now for a job on SageMaker: make a training job, stop it, or nothing."""

from dataclasses import dataclass

from muster.api.spec.job import Job
from muster.api.status.status import Status
from muster.core.actions import DeleteResource
from muster.core.clean_up import expires_at
from muster.core.deadlines import active_deadline
from muster.core.judge import Outcome, Verdict
from muster.core.training_job.backoff import retry_at
from muster.core.training_job.course import arrives_until
from muster.core.training_job.facts import Location, RequestFailure, TrainingFacts
from muster.core.training_job.state import TrainingState


@dataclass(frozen=True)
class HoldResource:
    """See to it that the resource can't go before its training job has ended: put muster's finalizer on it."""


@dataclass(frozen=True)
class ReleaseResource:
    """Nothing of the job runs any more: take the finalizer off."""


@dataclass(frozen=True)
class CreateTrainingJob:
    """Have SageMaker make the training job of this attempt; if it is there already and the job's, it is that one."""

    attempt: int


@dataclass(frozen=True)
class StopTrainingJob:
    """Have SageMaker stop the training job of this attempt: SIGTERM, and 120 s (API_StopTrainingJob)."""

    attempt: int
    where: Location


@dataclass(frozen=True)
class DeleteTrainingJob:
    """Have SageMaker forget the training job of this name, which is over."""

    name: str


TrainingAction = (
    HoldResource | ReleaseResource | CreateTrainingJob | StopTrainingJob | DeleteTrainingJob | DeleteResource
)


def decide_training_job(job: Job, state: TrainingState, outcome: Outcome, now: float) -> tuple[TrainingAction, ...]:
    """The actions that bring the job further at `now` (Unix seconds); none when all is as it should be.

    Deciding again on facts that show the actions applied gives nothing new.
    """
    facts, course = state.observed, state.course
    # Who can't see what runs does nothing.
    if facts.blind is not None:
        return ()
    if outcome.is_decided:
        return _end(job, facts, outcome, now)
    # It is there, or on its way.
    if facts.training is not None and not course.is_next:
        # Put the finalizer back: users who may edit the resource may remove it.
        return () if facts.is_held else (HoldResource(),)
    # Do not ask SageMaker again for what it refuses, until the spec changes.
    if facts.refusal is not None or facts.taken is not None:
        return ()
    # Without the finalizer a deleted resource would leave its training job running.
    if not facts.is_held:
        return (HoldResource(),)
    return () if now < course.due_at else (CreateTrainingJob(course.attempt),)


def training_wake(job: Job, previous: Status, state: TrainingState, outcome: Outcome, now: float) -> float | None:
    """When time alone, without a new fact, may change the decision or the status (Unix seconds); None: never."""
    facts, course = state.observed, state.course
    # A job that was resumed while it was being suspended is suspended completely first.
    if outcome.verdict is Verdict.SUSPENDED and outcome.settled and not job.spec.suspend:
        return now
    times = [state.nodes.silent_at(node) for node in state.nodes.nodes]
    if facts.blind is not None:
        times.append(retry_at(job.metadata.uid, facts.blind))
    if outcome.is_decided:
        times.append(expires_at(job, outcome))
        times += [_retry_at(job, one) for one in (facts.request_failure, facts.unclear) if one is not None]
        times.append(None if outcome.settled else arrives_until(previous, facts))
    else:
        times.append(active_deadline(job, outcome.began_at))
        times.append(course.due_at if course.is_next or facts.training is None else None)
    return min((at for at in times if at is not None and at > now), default=None)


def _end(job: Job, facts: TrainingFacts, outcome: Outcome, now: float) -> tuple[TrainingAction, ...]:
    training = facts.training
    if training is not None and not training.is_asked_to_end:
        where = facts.seen_at or facts.location
        return () if _is_put_off(job, facts, now) else (StopTrainingJob(outcome.attempt, where),)
    # Stopping is not an end, whatever the status told before.
    if not outcome.settled or (training is not None and not training.is_over):
        return ()
    # The status has the end already, so an operator that is killed here loses nothing.
    if facts.is_held:
        return () if facts.unclear is not None and now < _retry_at(job, facts.unclear) else (ReleaseResource(),)
    at = expires_at(job, outcome)
    if at is None or now < at or _is_put_off(job, facts, now):
        return ()
    return tuple(DeleteTrainingJob(name) for name in facts.remains) or (DeleteResource(),)


def _is_put_off(job: Job, facts: TrainingFacts, now: float) -> bool:
    """Whether SageMaker did not do it a moment ago."""
    return facts.request_failure is not None and now < _retry_at(job, facts.request_failure)


def _retry_at(job: Job, request_failure: RequestFailure) -> float:
    return retry_at(job.metadata.uid, request_failure)
