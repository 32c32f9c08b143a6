"""A job's suspension, as the status tells of it: asked for, under way, done, over."""

from muster.api.spec.job import Job
from muster.api.status.status import Condition, Status
from muster.api.timestamps import from_text
from muster.core.facts import JobFacts

SUSPENDED = "Suspended"
SUSPENDING = "Suspending"
RESUMED = "Resumed"
"""Reasons of the condition Suspended: it is so; it will be, once nothing is left; it was."""


def is_suspending(previous: Status) -> bool:
    """Whether a suspension is under way: it has to come to its end, whatever the spec says by now."""
    condition = _condition(previous)
    return condition is not None and condition.reason == SUSPENDING


def was_missed(job: Job, previous: Status, facts: JobFacts) -> bool:
    """Whether the job was suspended and resumed while no operator ran: its pods are of a spec before the present one.

    Only a suspended job's spec may change. Pods of another spec alone prove nothing: a release may read it differently.
    """
    return facts.outdated and job.metadata.generation > previous.observed_generation


def is_suspended(previous: Status) -> bool:
    """Whether the job is suspended, as far as the status tells."""
    condition = _condition(previous)
    return condition is not None and condition.status == "True"


def is_resumed(previous: Status) -> bool:
    """Whether the job was suspended, and is no more."""
    condition = _condition(previous)
    return condition is not None and condition.reason == RESUMED


def began_at(previous: Status, facts: JobFacts, now: float) -> float:
    """When the job was created or, after that, last resumed (Unix seconds): its deadlines count from there."""
    condition = _condition(previous)
    if condition is None:
        return facts.created_at
    # It is resumed by this very turn.
    if condition.status == "True":
        return now
    return from_text(condition.last_transition_time) if condition.reason == RESUMED else facts.created_at


def _condition(previous: Status) -> Condition | None:
    return next((entry for entry in previous.conditions if entry.type == SUSPENDED), None)
