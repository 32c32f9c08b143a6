"""Decide how to stop the training job of a deleted resource that has muster's finalizer."""

from dataclasses import dataclass

from muster.api.status.status import Status
from muster.core.training_job.attempt_state import find_creation_deadline
from muster.core.training_job.backoff import compute_retry_time
from muster.core.training_job.facts import REFUSALS, RequestFailure, TrainingFacts

GIVE_UP_SECONDS = 600.0
"""muster gives up after AWS has rejected all requests for this time, because a namespace's deletion may be waiting."""

RECHECK_SECONDS = 15.0
"""The interval at which muster checks whether AWS has rejected all requests for `GIVE_UP_SECONDS`."""


@dataclass(frozen=True)
class Wait:
    """Wait for an event, or until `until` (Unix seconds)."""

    until: float | None


@dataclass(frozen=True)
class Stop:
    """Stop the training job."""


@dataclass(frozen=True)
class RemoveFinalizer:
    """Remove the finalizer. `unstopped_failure` is why a training job may still run; None if no training job runs."""

    unstopped_failure: RequestFailure | None = None


DeletionStep = Wait | Stop | RemoveFinalizer


def decide_deletion(uid: str, previous: Status, facts: TrainingFacts, deleted_at: float, now: float) -> DeletionStep:
    """Decide at `now` what to do for a resource that was deleted at `deleted_at` (Unix seconds)."""
    training = facts.training
    if training is not None and training.is_over and facts.search_failure is None:
        return RemoveFinalizer()
    failure = next(
        (
            failure
            for failure in (
                facts.observation_failure,
                facts.refresh_failure,
                facts.search_failure,
                facts.request_failure,
            )
            if failure is not None
        ),
        None,
    )
    if failure is None or failure.kind not in REFUSALS:
        # A temporary failure ends without a user's action.
        return _stop_and_wait(uid, previous, facts, now, None)
    # Permissions may never come, so limit the wait. Rejections before the deletion don't shorten it.
    give_up_at = max(deleted_at, now - failure.refused_seconds) + GIVE_UP_SECONDS
    if now >= give_up_at and not _is_absent(facts):
        return RemoveFinalizer(failure)
    return _stop_and_wait(uid, previous, facts, now, max(give_up_at, now + RECHECK_SECONDS))


def _is_absent(facts: TrainingFacts) -> bool:
    """Whether muster has observed that there is no training job."""
    return facts.training is None and facts.observation_failure is None and facts.search_failure is None


def _stop_and_wait(
    uid: str, previous: Status, facts: TrainingFacts, now: float, give_up_at: float | None
) -> DeletionStep:
    if facts.observation_failure is not None:
        return Wait(_select_earliest(compute_retry_time(uid, facts.observation_failure), give_up_at))
    if facts.search_failure is not None:
        return Wait(_select_earliest(compute_retry_time(uid, facts.search_failure), give_up_at))
    if facts.training is None:
        creation_deadline = find_creation_deadline(previous, facts)
        return RemoveFinalizer() if now >= creation_deadline else Wait(creation_deadline)
    if facts.training.is_ending:
        return Wait(give_up_at)
    at = 0.0 if facts.request_failure is None else compute_retry_time(uid, facts.request_failure)
    return Stop() if now >= at else Wait(_select_earliest(at, give_up_at))


def _select_earliest(at: float, other: float | None) -> float:
    return at if other is None else min(at, other)
