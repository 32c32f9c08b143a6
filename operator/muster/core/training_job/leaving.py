"""What has to be done for a resource that was deleted and bears muster's finalizer: its training job must not go on."""

from dataclasses import dataclass

from muster.api.status.status import Status
from muster.core.training_job.backoff import retry_at
from muster.core.training_job.course import arrives_until
from muster.core.training_job.facts import REFUSALS, RequestFailure, TrainingFacts

GIVE_UP_SECONDS = 600.0
"""How long AWS has to refuse, try after try, before a deleted resource is let go: a namespace may wait for it."""

LOOK_AGAIN_SECONDS = 15.0
"""When to look again whether the tries that others make have been refused for long enough."""


@dataclass(frozen=True)
class Wait:
    """Until something changes, or `until` (Unix seconds)."""

    until: float | None


@dataclass(frozen=True)
class Stop:
    """Have SageMaker stop the training job."""


@dataclass(frozen=True)
class LetGo:
    """Take the finalizer off. `left_behind` says why a training job may still run; None: none does."""

    left_behind: RequestFailure | None = None


Leave = Wait | Stop | LetGo


def decide_leaving(uid: str, previous: Status, facts: TrainingFacts, deleted_at: float, now: float) -> Leave:
    """What to do at `now` for a resource that was deleted at `deleted_at` (Unix seconds)."""
    training = facts.training
    if training is not None and training.is_over and facts.unclear is None:
        return LetGo()
    failure = next(
        (one for one in (facts.blind, facts.stale, facts.unclear, facts.request_failure) if one is not None), None
    )
    if failure is None or failure.kind not in REFUSALS:
        # What passes by itself is waited for.
        return _stop_and_wait(uid, previous, facts, now, None)
    # A right that is missing may be missing for good. Refusals from before the deletion don't shorten the wait.
    give_up_at = max(deleted_at, now - failure.refused_seconds) + GIVE_UP_SECONDS
    if now >= give_up_at and not _never_came(facts):
        return LetGo(failure)
    return _stop_and_wait(uid, previous, facts, now, max(give_up_at, now + LOOK_AGAIN_SECONDS))


def _never_came(facts: TrainingFacts) -> bool:
    """Whether it is known that there is none."""
    return facts.training is None and facts.blind is None and facts.unclear is None


def _stop_and_wait(uid: str, previous: Status, facts: TrainingFacts, now: float, give_up_at: float | None) -> Leave:
    if facts.blind is not None:
        return Wait(_first(retry_at(uid, facts.blind), give_up_at))
    if facts.unclear is not None:
        return Wait(_first(retry_at(uid, facts.unclear), give_up_at))
    if facts.training is None:
        arrives = arrives_until(previous, facts)
        return LetGo() if now >= arrives else Wait(arrives)
    if facts.training.is_asked_to_end:
        return Wait(give_up_at)
    at = 0.0 if facts.request_failure is None else retry_at(uid, facts.request_failure)
    return Stop() if now >= at else Wait(_first(at, give_up_at))


def _first(at: float, other: float | None) -> float:
    return at if other is None else min(at, other)
