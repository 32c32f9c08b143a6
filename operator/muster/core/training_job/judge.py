"""Decide whether a job on SageMaker is over, and with which result."""

from dataclasses import replace

from muster.api.spec.job import Job
from muster.api.status.status import SUSPENDED, Status
from muster.core.facts import JobFacts
from muster.core.failure.ends import EndKind
from muster.core.failure.failure import Failure, find_failure
from muster.core.judge import apply_final_condition, find_active_deadline, find_active_start
from muster.core.outcome import DEADLINE_EXCEEDED, SUCCEEDED, WORLD_SIZE_MISMATCH, Outcome, Verdict
from muster.core.steps.hangs import find_hang
from muster.core.training_job.attempt_state import find_creation_deadline, is_training_job_lost
from muster.core.training_job.ends import STOPPED_ELSEWHERE, TRAINING_JOB_GONE, classify_training_failure
from muster.core.training_job.facts import COMPLETED, DELETING, TrainingFacts
from muster.core.training_job.state import TrainingState


def judge_training_job(job: Job, previous: Status, state: TrainingState, now: float) -> Outcome:
    """Return the job's outcome at `now` (Unix seconds). Complete or Failed in `previous` is final."""
    facts, attempt_state = state.facts, state.attempt_state
    active_since = find_active_start(previous, state.nodes, now)
    outcome = Outcome(
        Verdict.UNDECIDED,
        hang=None if attempt_state.is_next else find_hang(job, state.nodes, attempt_state.attempt, now),
        is_idle=_is_idle(previous, facts, now),
        has_started=not attempt_state.is_next and facts.training is not None and facts.training.has_trained,
        attempt=attempt_state.attempt,
        active_since=active_since,
        active_deadline=find_active_deadline(job, active_since),
    )
    if previous.final_condition is not None:
        # The job has ended, so don't ask SageMaker again.
        return replace(apply_final_condition(job, outcome, previous.final_condition), is_idle=True)
    return _decide_outcome(job, previous, state, outcome, now)


def _is_idle(previous: Status, facts: TrainingFacts, now: float) -> bool:
    """Whether no training job runs, and muster has to act before one can run."""
    if facts.observation_failure is not None:
        return False
    if facts.training is None:
        return now >= find_creation_deadline(previous, facts)
    # Wait for the ranks' last reports, which may explain the end.
    return facts.training.is_over and facts.has_all_reports


def _decide_outcome(job: Job, previous: Status, state: TrainingState, current: Outcome, now: float) -> Outcome:
    training = state.facts.training
    is_done = training is not None and training.status == COMPLETED and not state.attempt_state.is_next
    if is_done and state.facts.has_all_reports:
        return _apply_completion(job, state, current)
    # A failure during a suspension is a result of that suspension.
    if previous.is_suspending:
        return replace(current, verdict=Verdict.SUSPENDED, reason=SUSPENDED)
    causes = [*_list_end_causes(job, previous, state, current), *_list_deadline_causes(job, previous, current, now)]
    if causes:
        at, first = min(causes, key=lambda cause: cause[0])
        return replace(first, at=at)
    if job.spec.suspend and not previous.is_failing:
        return replace(
            current, verdict=Verdict.SUSPENDED, reason=SUSPENDED, is_idle=current.is_idle or previous.is_suspended
        )
    return current


def _apply_completion(job: Job, state: TrainingState, outcome: Outcome) -> Outcome:
    training = state.facts.training
    ended_at = training.ended_at if training is not None else None
    failure = _find_rank_failure(job, state.nodes)
    # A success with fewer ranks than requested is a failure.
    if failure is not None and failure.reason == WORLD_SIZE_MISMATCH:
        failed = replace(outcome, verdict=Verdict.FAILED, reason=WORLD_SIZE_MISMATCH, failure=failure)
        return replace(failed, at=failure.at)
    return replace(outcome, verdict=Verdict.SUCCEEDED, reason=SUCCEEDED, at=ended_at)


def _list_end_causes(job: Job, previous: Status, state: TrainingState, outcome: Outcome) -> list[tuple[float, Outcome]]:
    """Return the end of the training job as a cause, if no other training job follows."""
    failed, facts, training = replace(outcome, verdict=Verdict.FAILED), state.facts, state.facts.training
    if state.attempt_state.is_next:
        return []
    is_being_deleted = training is not None and training.status == DELETING
    if is_being_deleted or is_training_job_lost(previous, facts):
        return [(facts.created_at, replace(failed, reason=TRAINING_JOB_GONE, is_idle=True))]
    if training is None or not training.is_over or training.status == COMPLETED or not facts.has_all_reports:
        return []
    end = classify_training_failure(training)
    if end.reason == STOPPED_ELSEWHERE:
        # A user suspends the job anyway.
        if job.spec.suspend and not previous.is_failing:
            return []
        # muster stopped the failing job at its deadline, which a user may have extended since.
        if previous.is_failing:
            end = replace(end, reason=DEADLINE_EXCEEDED)
    failure = _find_rank_failure(job, state.nodes)
    at = training.ended_at if training.ended_at is not None else training.created_at
    if failure is None:
        return [(at, replace(failed, reason=end.reason))]
    return [(at, replace(failed, reason=failure.reason, failure=failure))]


def _find_rank_failure(job: Job, facts: JobFacts) -> Failure | None:
    """Return the failure in the ranks' reports, which is more precise than SageMaker's."""
    failure = find_failure(job, facts, has_started=True)
    return None if failure is None or failure.first.kind is EndKind.AGENT else failure


def _list_deadline_causes(job: Job, previous: Status, outcome: Outcome, now: float) -> list[tuple[float, Outcome]]:
    # Deadlines don't apply to a suspended job, unless it is already failing.
    if job.spec.suspend and not previous.is_failing:
        return []
    at = outcome.active_deadline
    if at is None or now < at:
        return []
    return [(at, replace(outcome, verdict=Verdict.FAILED, reason=DEADLINE_EXCEEDED))]
