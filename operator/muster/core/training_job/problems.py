"""Find the problems of a job on SageMaker, for the conditions in its status."""

from dataclasses import replace

from muster.api.timestamps import format_timestamp
from muster.core.facts import JobFacts
from muster.core.problem import Problem
from muster.core.training_job.attempt_state import AttemptState
from muster.core.training_job.ends import INSUFFICIENT_CAPACITY
from muster.core.training_job.facts import FailureKind, RequestFailure, TrainingFacts

NO_CAPACITY = "NoCapacity"
CAPACITY_REASONS = (NO_CAPACITY, INSUFFICIENT_CAPACITY)

SERVICE_REASONS = ("AwsThrottled", "AwsUnavailable")
"""The reasons of problems that end without a user's action."""

MIN_REPORTED_TRIES = 3
"""The status shows a failure of AWS only after this many in a row, because one or two happen every day."""


def add_job_problems(job_facts: JobFacts, facts: TrainingFacts, attempt_state: AttemptState) -> JobFacts:
    """Add the job's refusal, problem and warnings to its facts."""
    request_failure, refusal = facts.request_failure, facts.refusal
    if refusal is None and request_failure is not None and request_failure.kind is FailureKind.REFUSED:
        refusal = request_failure.problem
    return replace(job_facts, refusal=refusal, problem=_find_job_problem(facts, attempt_state), warnings=facts.warnings)


def _find_job_problem(facts: TrainingFacts, attempt_state: AttemptState) -> Problem | None:
    if facts.name_conflict is not None:
        return facts.name_conflict
    # A failed observation explains the other failures.
    for request_failure in (
        facts.observation_failure,
        facts.refresh_failure,
        facts.request_failure,
        facts.search_failure,
    ):
        if request_failure is not None and _is_reported(request_failure):
            return request_failure.problem
    waiting = attempt_state.waiting
    if waiting is None or (facts.training is not None and not attempt_state.is_next):
        return None
    times = "" if waiting.tries == 1 else f", {waiting.tries} times in a row"
    next_try = f"muster asks SageMaker again at {format_timestamp(waiting.until)}"
    return Problem(waiting.reason, f"{waiting.message.rstrip('.')}{times}; {next_try}")


def _is_reported(request_failure: RequestFailure) -> bool:
    if request_failure.kind in (FailureKind.CAPACITY, FailureKind.REFUSED):
        return False
    return request_failure.kind is not FailureKind.SERVICE or request_failure.tries >= MIN_REPORTED_TRIES
