"""The status of a deleted resource, while muster stops its training job."""

import re

from muster.api.spec.job import Metadata
from muster.api.spec.sagemaker.spec import REGION_PATTERN
from muster.api.status.sagemaker import SageMakerStatus
from muster.api.status.status import Status
from muster.core.status.conditions import ConditionState, make_condition
from muster.core.status.truncate import truncate_message
from muster.core.training_job.attempt_state import get_sagemaker_status
from muster.core.training_job.deletion import DeletionStep, RemoveFinalizer, Wait
from muster.core.training_job.facts import Location, TrainingFacts
from muster.core.training_job.name import build_name_prefix, build_training_job_name

LEFT_RUNNING = "TrainingJobLeftRunning"


def build_deletion_status(  # noqa: PLR0917 - the results of one reconcile
    metadata: Metadata, previous: Status, facts: TrainingFacts, step: DeletionStep, generation: int, now: float
) -> Status:
    """Add to `previous` whether muster has stopped the training job at `now` (Unix seconds)."""
    status = previous.model_copy(update={"observed_generation": generation})
    record = get_sagemaker_status(previous)
    if isinstance(step, RemoveFinalizer):
        if step.unstopped_failure is None:
            return status
        return _add_message(
            status, describe_left_running(metadata, previous, facts, step.unstopped_failure.problem.message), now
        )
    if record is None or previous.final_condition is not None:
        return status
    # Don't trust the name in the status: a user may have edited it.
    name = build_training_job_name(metadata, record.attempt)
    failure = facts.observation_failure or facts.refresh_failure or facts.search_failure or facts.request_failure
    why = f"; {failure.problem.message}" if failure is not None and failure.tries > 1 else ""
    training_job = f"training job {name}"
    action = f"waits until {training_job} has stopped" if isinstance(step, Wait) else f"stops {training_job}"
    message = truncate_message(f"The resource was deleted: muster {action}{why}")
    return status.model_copy(update={"phase": "Stopping", "message": message})


def describe_left_running(metadata: Metadata, previous: Status, facts: TrainingFacts, why: str) -> str:
    """Describe a training job that muster could not stop, with the command that stops it."""
    record = get_sagemaker_status(previous)
    if record is None and facts.training is None:
        subject, remedy = "A training job of this job", "Look for it"
        place, name = facts.location, build_name_prefix(metadata)
        command = f"list-training-jobs --status-equals InProgress --name-contains {name}"
    else:
        # Don't trust the name in the status: a user may have edited it, and others paste the command into a shell.
        name = (
            facts.training.name
            if facts.training is not None
            else build_training_job_name(metadata, _get_attempt(record))
        )
        place = facts.observed_location or (
            facts.location if record is None else Location(record.region, record.assume_role_arn)
        )
        subject, remedy, command = f"Training job {name}", "Stop it", f"stop-training-job --training-job-name {name}"
    role = f" (as {place.assume_role_arn})" if place.assume_role_arn else ""
    return truncate_message(
        f"{subject} may still run, and cost money: muster can't stop it, and removes its finalizer from the "
        f"resource. {remedy}{role}: `aws sagemaker {command} --region {_sanitize_region(place.region)}`. {why}"
    )


def _sanitize_region(region: str) -> str:
    """Return the region if it is safe in a shell command, because a user may have edited the status."""
    return region if re.fullmatch(REGION_PATTERN, region) else "REGION"


def _get_attempt(record: SageMakerStatus | None) -> int:
    return 0 if record is None else record.attempt


def _add_message(status: Status, message: str, now: float) -> Status:
    state = ConditionState("Stalled", True, LEFT_RUNNING, message)
    stalled = make_condition(status, state, status.observed_generation, now)
    others = tuple(entry for entry in status.conditions if entry.type != "Stalled")
    return status.model_copy(update={"phase": "Stopping", "message": message, "conditions": (*others, stalled)})
