"""Is a job on SageMaker over, and how did it end: one verdict, in the words that every job has."""

from dataclasses import replace

from muster.api.spec.job import Job
from muster.api.status.status import SUSPENDED, Status
from muster.api.timestamps import from_text
from muster.core.attempts import began_at
from muster.core.deadlines import active_deadline
from muster.core.facts import JobFacts
from muster.core.failure.ends import Subject
from muster.core.failure.failure import Failure, find_failure
from muster.core.judge import DEADLINE_EXCEEDED, SUCCEEDED, WORLD_SIZE_MISMATCH, Outcome, Verdict
from muster.core.training_job.course import arrives_until, is_lost
from muster.core.training_job.ends import STOPPED_ELSEWHERE, TRAINING_JOB_GONE, bad_end
from muster.core.training_job.facts import COMPLETED, DELETING, TrainingFacts
from muster.core.training_job.state import TrainingState


def judge_training_job(job: Job, previous: Status, state: TrainingState, now: float) -> Outcome:
    """How the job stands at `now` (Unix seconds). Once `previous` says Complete or Failed it stays so."""
    facts, course = state.observed, state.course
    outcome = Outcome(
        Verdict.UNDECIDED,
        settled=_is_settled(previous, facts, now),
        started=not course.is_next and facts.training is not None and facts.training.has_trained,
        attempt=course.attempt,
        began_at=began_at(previous, state.nodes, now),
    )
    # What was told to the world is not taken back.
    last = previous.final_condition
    if last is not None:
        verdict = Verdict.SUCCEEDED if last.type == "Complete" else Verdict.FAILED
        told_at = from_text(last.last_transition_time)
        # Nothing runs any more, and SageMaker is not asked again.
        return replace(outcome, verdict=verdict, reason=last.reason, told_at=told_at, settled=True)
    return _decided(job, previous, state, outcome, now)


def _is_settled(previous: Status, facts: TrainingFacts, now: float) -> bool:
    """Whether nothing of the job runs, or may come to run without muster."""
    if facts.blind is not None:
        return False
    if facts.training is None:
        return now >= arrives_until(previous, facts)
    # What its ranks said last may say why it ended.
    return facts.training.is_over and facts.is_heard_out


def _decided(job: Job, previous: Status, state: TrainingState, current: Outcome, now: float) -> Outcome:
    training = state.observed.training
    is_done = training is not None and training.status == COMPLETED and not state.course.is_next
    if is_done and state.observed.is_heard_out:
        return _completed(job, state, current)
    # What fails from here on fails because it is being stopped.
    if previous.is_suspending:
        return replace(current, verdict=Verdict.SUSPENDED, reason=SUSPENDED)
    causes = [*_ends(job, previous, state, current), *_deadline(job, previous, current, now)]
    if causes:
        at, first = min(causes, key=lambda cause: cause[0])
        return replace(first, at=at)
    if job.spec.suspend and not previous.is_failing:
        return replace(
            current, verdict=Verdict.SUSPENDED, reason=SUSPENDED, settled=current.settled or previous.is_suspended
        )
    return current


def _completed(job: Job, state: TrainingState, outcome: Outcome) -> Outcome:
    training = state.observed.training
    ended_at = training.ended_at if training is not None else None
    failure = _ranks_failure(job, state.nodes)
    # A success of fewer ranks than were asked for is none.
    if failure is not None and failure.reason == WORLD_SIZE_MISMATCH:
        failed = replace(outcome, verdict=Verdict.FAILED, reason=WORLD_SIZE_MISMATCH, failure=failure)
        return replace(failed, at=failure.at)
    return replace(outcome, verdict=Verdict.SUCCEEDED, reason=SUCCEEDED, at=ended_at)


def _ends(job: Job, previous: Status, state: TrainingState, outcome: Outcome) -> list[tuple[float, Outcome]]:
    """A training job's own end, when no other one follows it."""
    failed, facts, training = replace(outcome, verdict=Verdict.FAILED), state.observed, state.observed.training
    if state.course.is_next:
        return []
    is_gone = training is not None and training.status == DELETING
    if is_gone or is_lost(previous, facts):
        return [(facts.created_at, replace(failed, reason=TRAINING_JOB_GONE, settled=True))]
    if training is None or not training.is_over or training.status == COMPLETED or not facts.is_heard_out:
        return []
    end = bad_end(training)
    if end.reason == STOPPED_ELSEWHERE:
        # It is what its owner wants, too.
        if job.spec.suspend and not previous.is_failing:
            return []
        # Muster stopped it, for the only reason that it has; the deadline may have been put off since.
        if previous.is_failing:
            end = replace(end, reason=DEADLINE_EXCEEDED)
    failure = _ranks_failure(job, state.nodes)
    at = training.ended_at if training.ended_at is not None else training.created_at
    if failure is None:
        return [(at, replace(failed, reason=end.reason))]
    return [(at, replace(failed, reason=failure.reason, failure=failure))]


def _ranks_failure(job: Job, facts: JobFacts) -> Failure | None:
    """What ranks said of their failure: SageMaker's own word on it is less."""
    failure = find_failure(job, facts, started=True)
    return None if failure is None or failure.first.subject is Subject.AGENT else failure


def _deadline(job: Job, previous: Status, outcome: Outcome, now: float) -> list[tuple[float, Outcome]]:
    # A suspended job has all the time, unless its end was told before.
    if job.spec.suspend and not previous.is_failing:
        return []
    at = active_deadline(job, outcome.began_at)
    if at is None or now < at:
        return []
    return [(at, replace(outcome, verdict=Verdict.FAILED, reason=DEADLINE_EXCEEDED))]
