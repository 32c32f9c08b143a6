"""`status.backend.sagemaker`: the job's training jobs, as SageMaker describes them."""

from muster.api.status.sagemaker import (
    MAX_EARLIER_JOBS,
    MAX_HISTORY,
    BackendStatus,
    EarlierTrainingJob,
    Retry,
    SageMakerStatus,
    SecondaryStatus,
)
from muster.api.timestamps import format_timestamp
from muster.core.failure.rank_output import sanitize_line
from muster.core.status.truncate import truncate_message
from muster.core.status.views import StatusInput
from muster.core.training_job.attempt_state import CapacityWait, get_sagemaker_status
from muster.core.training_job.ends import classify_training_failure
from muster.core.training_job.facts import COMPLETED, Location, TrainingJob
from muster.core.training_job.name import build_training_job_name
from muster.core.training_job.state import TrainingState

MAX_MESSAGE_CHARS = 256
"""The maximum length of the message about a secondary status. SageMaker's messages are shorter."""

_CONSOLES = {"cn": "console.amazonaws.cn", "us-gov": "console.amazonaws-us-gov.com"}
"""The consoles of the other AWS partitions, by the prefix of their regions."""


def build_console_url(region: str, name: str) -> str:
    """Return the URL of the training job in the AWS console."""
    host_suffix = next((host for prefix, host in _CONSOLES.items() if region.startswith(f"{prefix}-")), None)
    host = (
        f"{region}.console.aws.amazon.com"
        if host_suffix is None
        else f"{region}.{host_suffix}"
        if region[:2] != "cn"
        else host_suffix
    )
    return f"https://{host}/sagemaker/home?region={region}#/jobs/{name}"


def build_training_record(
    status_input: StatusInput, state: TrainingState, tried_at: float | None
) -> BackendStatus | None:
    """Return the record of the current training job and its predecessors.

    `tried_at` is the current time if muster is about to request a training job (Unix seconds); None otherwise.
    """
    record = get_sagemaker_status(status_input.previous)
    if tried_at is not None:
        return BackendStatus(sagemaker=_build_next_record(status_input, state, tried_at))
    if state.facts.training is None or not status_input.previous.was_started:
        record = (
            None if record is None else record.model_copy(update={"retry": _build_retry(state.attempt_state.waiting)})
        )
        return None if record is None else BackendStatus(sagemaker=record)
    if record is None:
        record = _make_record(status_input, state, state.facts.training.created_at)
    # Prefer the region and role of the observation to those in the status.
    location = state.facts.observed_location or Location(record.region, record.assume_role_arn)
    current_fields = {
        "region": location.region,
        "assume_role_arn": location.assume_role_arn,
        "retry": _build_retry(state.attempt_state.waiting),
    }
    return BackendStatus(
        sagemaker=record.model_copy(
            update={**_describe_training_job(state.facts.training, location.region), **current_fields}
        )
    )


def _build_next_record(status_input: StatusInput, state: TrainingState, tried_at: float) -> SageMakerStatus:
    previous = get_sagemaker_status(status_input.previous)
    earlier = () if previous is None else previous.earlier
    if previous is not None and previous.attempt < state.attempt_state.attempt:
        last = state.facts.training if status_input.previous.was_started else None
        current = (
            previous if last is None else previous.model_copy(update=_describe_training_job(last, previous.region))
        )
        earlier = (*earlier, _make_earlier_job(current, last))
    record = _make_record(status_input, state, tried_at)
    return record.model_copy(
        update={"earlier": earlier[-MAX_EARLIER_JOBS:], "retry": _build_retry(state.attempt_state.waiting)}
    )


def _make_record(status_input: StatusInput, state: TrainingState, tried_at: float) -> SageMakerStatus:
    metadata, attempt = status_input.job.metadata, state.attempt_state.attempt
    return SageMakerStatus(
        training_job_name=build_training_job_name(metadata, attempt),
        attempt=attempt,
        restarts=state.attempt_state.restarts,
        region=state.facts.location.region,
        assume_role_arn=state.facts.location.assume_role_arn,
        tried_at=format_timestamp(tried_at),
    )


def _make_earlier_job(record: SageMakerStatus, training: TrainingJob | None) -> EarlierTrainingJob:
    if training is None or training.status == COMPLETED:
        reason, message = "Suspended", ""
    else:
        end = classify_training_failure(training)
        reason, message = end.reason, truncate_message(end.message)
    return EarlierTrainingJob(
        attempt=record.attempt,
        training_job_name=record.training_job_name,
        status=record.status or "",
        reason=reason,
        message=message,
        billable_seconds=record.billable_seconds,
    )


def _build_retry(waiting: CapacityWait | None) -> Retry | None:
    if waiting is None:
        return None
    return Retry(
        attempt=waiting.attempt,
        reason=waiting.reason,
        message=truncate_message(waiting.message),
        tries=waiting.tries,
        until=format_timestamp(waiting.until),
    )


def _describe_training_job(training: TrainingJob, region: str) -> dict[str, object]:
    periods = training.history[-MAX_HISTORY:]
    return {
        "arn": training.arn,
        "status": training.status,
        "secondary_status": training.secondary_status,
        "status_message": sanitize_line(periods[-1].message, limit=MAX_MESSAGE_CHARS) or None if periods else None,
        "failure_reason": truncate_message(training.failure_reason) if training.failure_reason else None,
        "history": tuple(
            SecondaryStatus(
                status=period.status,
                started_at=format_timestamp(period.started_at),
                ended_at=None if period.ended_at is None else format_timestamp(period.ended_at),
                message=sanitize_line(period.message, limit=MAX_MESSAGE_CHARS),
            )
            for period in periods
        ),
        "billable_seconds": training.billable_seconds,
        "training_seconds": training.training_seconds,
        "image": training.image,
        "instance_type": training.instance_type,
        "instance_count": training.instance_count,
        "console_url": build_console_url(region, training.name),
    }
