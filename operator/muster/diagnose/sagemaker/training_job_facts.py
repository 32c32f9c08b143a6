"""Convert SageMaker's description of a training job to muster's facts. Pure."""

import math

from muster.core.training_job.facts import FinalMetric, StatusPeriod, TrainingJob
from muster.objects.aws.training_job import TrainingJobDescription


def convert_description(description: TrainingJobDescription) -> TrainingJob:
    """Convert a description to the facts about a training job."""
    groups = description.instance_groups
    types = {kind for _, kind, _ in groups}
    count = sum(count for _, _, count in groups) if groups else description.instance_count
    return TrainingJob(
        name=description.name,
        arn=description.arn,
        status=description.status,
        secondary_status=description.secondary_status,
        created_at=description.created_at.timestamp(),
        started_at=None if description.started_at is None else description.started_at.timestamp(),
        ended_at=_find_end_time(description),
        history=tuple(
            StatusPeriod(
                entry.status,
                entry.started_at.timestamp(),
                None if entry.ended_at is None else entry.ended_at.timestamp(),
                entry.message,
            )
            for entry in description.transitions
        ),
        failure_reason=description.failure_reason or None,
        billable_seconds=description.billable_seconds,
        training_seconds=description.training_seconds,
        image=description.image or None,
        instance_type=(types.pop() if len(types) == 1 else None) if groups else description.instance_type or None,
        instance_count=count,
        metrics=tuple(
            FinalMetric(entry.name, entry.value, entry.at.timestamp())
            for entry in description.metrics
            if math.isfinite(entry.value)
        ),
    )


def _find_end_time(description: TrainingJobDescription) -> float | None:
    if not description.has_ended:
        return None
    # A job that never trained has no TrainingEndTime.
    at = description.modified_at if description.ended_at is None else description.ended_at
    return at.timestamp()
