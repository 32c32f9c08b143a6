"""`status.backend.sagemaker`: the job's training jobs, as SageMaker tells of them."""

from muster.api.status.sagemaker import (
    MAX_EARLIER,
    MAX_HISTORY,
    BackendStatus,
    EarlierTrainingJob,
    Retry,
    SageMakerStatus,
    SecondaryStatus,
)
from muster.api.timestamps import to_seconds
from muster.core.attempts import was_started
from muster.core.failure.rank_output import clean
from muster.core.status.sentences import fit
from muster.core.status.views import Picture
from muster.core.training_job.course import Waiting, sagemaker_status_of
from muster.core.training_job.ends import bad_end
from muster.core.training_job.facts import COMPLETED, Location, TrainingFacts, TrainingJob
from muster.core.training_job.judge import Judgement
from muster.core.training_job.name import training_job_name

MAX_MESSAGE_CHARS = 256
"""Of what SageMaker says about a secondary status; its own words are shorter."""

_CONSOLES = {"cn": "console.amazonaws.cn", "us-gov": "console.amazonaws-us-gov.com"}
"""The consoles of the partitions that have one of their own, by the beginning of their regions' names."""


def console_url(region: str, name: str) -> str:
    """The training job's page in the AWS console."""
    own = next((host for prefix, host in _CONSOLES.items() if region.startswith(f"{prefix}-")), None)
    host = f"{region}.console.aws.amazon.com" if own is None else f"{region}.{own}" if region[:2] != "cn" else own
    return f"https://{host}/sagemaker/home?region={region}#/jobs/{name}"


def training_record(
    picture: Picture, facts: TrainingFacts, judgement: Judgement, tried_at: float | None
) -> BackendStatus | None:
    """What is told of the present training job and those before it.

    `tried_at` is set when SageMaker is about to be asked for one (Unix seconds).
    """
    told = sagemaker_status_of(picture.previous)
    if tried_at is not None:
        return BackendStatus(sagemaker=_asked_for(picture, facts, judgement, tried_at))
    if facts.training is None or not was_started(picture.previous):
        record = None if told is None else told.model_copy(update={"retry": _retry(judgement.course.waiting)})
        return None if record is None else BackendStatus(sagemaker=record)
    if told is None:
        told = _begun(picture, facts, judgement, facts.training.created_at)
    # Where it is seen, whatever was written there.
    where = facts.seen_at or Location(told.region, told.assume_role_arn)
    here = {"region": where.region, "assume_role_arn": where.assume_role_arn, "retry": _retry(judgement.course.waiting)}
    return BackendStatus(sagemaker=told.model_copy(update={**_described(facts.training, where.region), **here}))


def _asked_for(picture: Picture, facts: TrainingFacts, judgement: Judgement, tried_at: float) -> SageMakerStatus:
    told = sagemaker_status_of(picture.previous)
    earlier = () if told is None else told.earlier
    if told is not None and told.attempt < judgement.course.attempt:
        last = facts.training if was_started(picture.previous) else None
        current = told if last is None else told.model_copy(update=_described(last, told.region))
        earlier = (*earlier, _earlier(current, last))
    record = _begun(picture, facts, judgement, tried_at)
    return record.model_copy(update={"earlier": earlier[-MAX_EARLIER:], "retry": _retry(judgement.course.waiting)})


def _begun(picture: Picture, facts: TrainingFacts, judgement: Judgement, tried_at: float) -> SageMakerStatus:
    metadata, attempt = picture.job.metadata, judgement.course.attempt
    return SageMakerStatus(
        training_job_name=training_job_name(metadata, attempt),
        attempt=attempt,
        restarts=judgement.course.restarts,
        region=facts.location.region,
        assume_role_arn=facts.location.assume_role_arn,
        tried_at=to_seconds(tried_at),
    )


def _earlier(record: SageMakerStatus, training: TrainingJob | None) -> EarlierTrainingJob:
    if training is None or training.status == COMPLETED:
        reason, message = "Suspended", ""
    else:
        end = bad_end(training)
        reason, message = end.reason, fit(end.message)
    return EarlierTrainingJob(
        attempt=record.attempt,
        training_job_name=record.training_job_name,
        status=record.status or "",
        reason=reason,
        message=message,
        billable_seconds=record.billable_seconds,
    )


def _retry(waiting: Waiting | None) -> Retry | None:
    if waiting is None:
        return None
    return Retry(
        attempt=waiting.attempt,
        reason=waiting.reason,
        message=fit(waiting.message),
        tries=waiting.tries,
        until=to_seconds(waiting.until),
    )


def _described(training: TrainingJob, region: str) -> dict[str, object]:
    spans = training.history[-MAX_HISTORY:]
    return {
        "arn": training.arn,
        "status": training.status,
        "secondary_status": training.secondary_status,
        "status_message": clean(spans[-1].message, limit=MAX_MESSAGE_CHARS) or None if spans else None,
        "failure_reason": fit(training.failure_reason) if training.failure_reason else None,
        "history": tuple(
            SecondaryStatus(
                status=span.status,
                started_at=to_seconds(span.started_at),
                ended_at=None if span.ended_at is None else to_seconds(span.ended_at),
                message=clean(span.message, limit=MAX_MESSAGE_CHARS),
            )
            for span in spans
        ),
        "billable_seconds": training.billable_seconds,
        "training_seconds": training.training_seconds,
        "image": training.image,
        "instance_type": training.instance_type,
        "instance_count": training.instance_count,
        "console_url": console_url(region, training.name),
    }
