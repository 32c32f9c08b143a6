"""Convert SageMaker's description of a training job to facts. Pure."""

import math

from muster.core.training_job.facts import FinalMetric, Span, TrainingJob
from muster.objects.aws.training_job import Description


def training_job_of(described: Description) -> TrainingJob:
    """Convert a description to a training job."""
    groups = described.instance_groups
    types = {kind for _, kind, _ in groups}
    count = sum(count for _, _, count in groups) if groups else described.instance_count
    return TrainingJob(
        name=described.name,
        arn=described.arn,
        status=described.status,
        secondary_status=described.secondary_status,
        created_at=described.created_at.timestamp(),
        started_at=None if described.started_at is None else described.started_at.timestamp(),
        ended_at=_ended_at(described),
        history=tuple(
            Span(
                entry.status,
                entry.started_at.timestamp(),
                None if entry.ended_at is None else entry.ended_at.timestamp(),
                entry.message,
            )
            for entry in described.transitions
        ),
        failure_reason=described.failure_reason or None,
        billable_seconds=described.billable_seconds,
        training_seconds=described.training_seconds,
        image=described.image or None,
        instance_type=(types.pop() if len(types) == 1 else None) if groups else described.instance_type or None,
        instance_count=count,
        metrics=tuple(
            FinalMetric(entry.name, entry.value, entry.at.timestamp())
            for entry in described.metrics
            if math.isfinite(entry.value)
        ),
    )


def _ended_at(described: Description) -> float | None:
    if not described.has_ended:
        return None
    # A job that never trained has no TrainingEndTime.
    at = described.modified_at if described.ended_at is None else described.ended_at
    return at.timestamp()
