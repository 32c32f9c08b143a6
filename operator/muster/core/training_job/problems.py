"""What keeps a job on SageMaker from going on, as the problems that conditions tell of."""

from dataclasses import replace

from muster.api.timestamps import to_seconds
from muster.core.facts import JobFacts, Problem
from muster.core.training_job.course import Course
from muster.core.training_job.ends import INSUFFICIENT_CAPACITY
from muster.core.training_job.facts import FailureKind, RequestFailure, TrainingFacts

NO_CAPACITY = "NoCapacity"
CAPACITY_REASONS = (NO_CAPACITY, INSUFFICIENT_CAPACITY)

SERVICE_REASONS = ("AwsThrottled", "AwsUnavailable")
"""Reasons of problems that pass without a person."""

WORTH_A_WORD = 3
"""So often in a row AWS has to fail before it is told: once or twice it does so every day."""


def with_problems(shown: JobFacts, facts: TrainingFacts, course: Course) -> JobFacts:
    """The job's facts with what stands in its way, and what there is to say of its spec."""
    request_failure, refusal = facts.request_failure, facts.refusal
    if refusal is None and request_failure is not None and request_failure.kind is FailureKind.REFUSED:
        refusal = request_failure.problem
    return replace(shown, refusal=refusal, problem=_problem(facts, course), remarks=facts.remarks)


def _problem(facts: TrainingFacts, course: Course) -> Problem | None:
    if facts.taken is not None:
        return facts.taken
    # Who sees nothing knows nothing else either.
    for request_failure in (facts.blind, facts.stale, facts.request_failure, facts.unclear):
        if request_failure is not None and _is_told(request_failure):
            return request_failure.problem
    waiting = course.waiting
    if waiting is None or (facts.training is not None and not course.is_next):
        return None
    times = "" if waiting.tries == 1 else f", {waiting.tries} times in a row"
    again = f"SageMaker is asked again at {to_seconds(waiting.until)}"
    return Problem(waiting.reason, f"{waiting.message.rstrip('.')}{times}; {again}")


def _is_told(request_failure: RequestFailure) -> bool:
    if request_failure.kind in (FailureKind.CAPACITY, FailureKind.REFUSED):
        return False
    return request_failure.kind is not FailureKind.SERVICE or request_failure.tries >= WORTH_A_WORD
