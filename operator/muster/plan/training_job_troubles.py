"""What keeps a job on SageMaker from going on, as the troubles that conditions tell of."""

from dataclasses import replace

from muster.api.timestamps import to_seconds
from muster.plan.facts import JobFacts, Trouble
from muster.plan.training_job_course import Course
from muster.plan.training_job_ends import INSUFFICIENT_CAPACITY
from muster.plan.training_job_facts import Obstacle, Setback, TrainingFacts

NO_CAPACITY = "NoCapacity"
CAPACITY_REASONS = (NO_CAPACITY, INSUFFICIENT_CAPACITY)

SERVICE_REASONS = ("AwsThrottled", "AwsUnavailable")
"""Reasons of troubles that nobody has to do anything about."""

WORTH_A_WORD = 3
"""So often in a row AWS has to fail before it is told: once or twice it does so every day."""


def with_troubles(shown: JobFacts, facts: TrainingFacts, course: Course) -> JobFacts:
    """The job's facts with what stands in its way, and what there is to say of its spec."""
    setback, refusal = facts.setback, facts.refusal
    if refusal is None and setback is not None and setback.obstacle is Obstacle.REFUSED:
        refusal = setback.trouble
    return replace(shown, refusal=refusal, trouble=_trouble(facts, course), remarks=facts.remarks)


def _trouble(facts: TrainingFacts, course: Course) -> Trouble | None:
    if facts.taken is not None:
        return facts.taken
    # Who sees nothing knows nothing else either.
    for setback in (facts.blind, facts.stale, facts.setback, facts.unclear):
        if setback is not None and _is_told(setback):
            return setback.trouble
    waiting = course.waiting
    if waiting is None or (facts.training is not None and not course.is_next):
        return None
    times = "" if waiting.tries == 1 else f", {waiting.tries} times in a row"
    again = f"SageMaker is asked again at {to_seconds(waiting.until)}"
    return Trouble(waiting.reason, f"{waiting.message.rstrip('.')}{times}; {again}")


def _is_told(setback: Setback) -> bool:
    if setback.obstacle in (Obstacle.CAPACITY, Obstacle.REFUSED):
        return False
    return setback.obstacle is not Obstacle.SERVICE or setback.tries >= WORTH_A_WORD
