"""What has to be done for a resource that was deleted and bears muster's finalizer: its training job must not go on."""

from dataclasses import dataclass

from muster.api.status import Status
from muster.plan.training_job_course import arrives_until, told_of
from muster.plan.training_job_facts import Obstacle, Setback, TrainingFacts
from muster.plan.training_job_pauses import asked_again_at

GIVE_UP_SECONDS = 600.0
"""How long a deleted resource is kept because nobody may stop its training job: a namespace may wait for it."""


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

    left_behind: Setback | None = None


Leave = Wait | Stop | LetGo


def decide_leaving(uid: str, previous: Status, facts: TrainingFacts, deleted_at: float, now: float) -> Leave:
    """What to do at `now` for a resource that was deleted at `deleted_at` (Unix seconds)."""
    # SageMaker was never asked for anything.
    if told_of(previous) is None:
        return LetGo()
    if facts.blind is not None:
        return _in_spite_of(uid, facts.blind, deleted_at, now)
    if facts.training is None:
        arrives = arrives_until(previous, facts)
        return LetGo() if now >= arrives else Wait(arrives)
    if facts.training.is_over:
        return LetGo()
    return Wait(None) if facts.training.is_asked_to_end else _stop(uid, facts, deleted_at, now)


def _stop(uid: str, facts: TrainingFacts, deleted_at: float, now: float) -> Leave:
    if facts.setback is None:
        return Stop()
    in_spite = _in_spite_of(uid, facts.setback, deleted_at, now)
    again = asked_again_at(uid, facts.setback)
    return Stop() if isinstance(in_spite, Wait) and again is not None and now >= again else in_spite


def _in_spite_of(uid: str, obstacle: Setback, deleted_at: float, now: float) -> Leave:
    give_up_at = deleted_at + GIVE_UP_SECONDS
    again = asked_again_at(uid, obstacle)
    # What passes by itself is waited for. A right that is missing may be missing for good.
    gives_up = obstacle.obstacle is not Obstacle.SERVICE
    if gives_up and now >= give_up_at:
        return LetGo(obstacle)
    times = [at for at in (again, give_up_at if gives_up else None) if at is not None and at > now]
    return Wait(min(times, default=now))
