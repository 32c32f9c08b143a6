"""Convert SageMaker's responses to muster's types. Pure. A value of an unexpected type counts as absent."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TypeAlias

from muster.objects.aws.errors import Unavailable
from muster.objects.aws.training_job import (
    FinalMetric,
    SecondaryStatusTransition,
    TrainingJobDescription,
    TrainingJobSummary,
)

Fields: TypeAlias = Mapping[str, object]


def decode_summary(fields: Fields) -> TrainingJobSummary:
    """Convert a TrainingJobSummary. Raises Unavailable if a required time is missing."""
    return TrainingJobSummary(
        name=read_text(fields, "TrainingJobName"),
        arn=read_text(fields, "TrainingJobArn"),
        status=read_text(fields, "TrainingJobStatus"),
        secondary_status=read_text(fields, "SecondaryStatus"),
        created_at=_read_required_time(fields, "CreationTime"),
        modified_at=_read_modification_time(fields),
    )


def decode_description(fields: Fields) -> TrainingJobDescription:
    """Convert a DescribeTrainingJobResponse. Raises Unavailable if a required time is missing."""
    resources = _read_mapping(fields, "ResourceConfig")
    return TrainingJobDescription(
        **vars(decode_summary(fields)),
        started_at=_read_time(fields, "TrainingStartTime"),
        ended_at=_read_time(fields, "TrainingEndTime"),
        failure_reason=read_text(fields, "FailureReason"),
        transitions=tuple(_decode_transition(item) for item in read_structures(fields, "SecondaryStatusTransitions")),
        metrics=tuple(_decode_metric(item) for item in read_structures(fields, "FinalMetricDataList")),
        training_seconds=_read_integer(fields, "TrainingTimeInSeconds"),
        billable_seconds=_read_integer(fields, "BillableTimeInSeconds"),
        image=read_text(_read_mapping(fields, "AlgorithmSpecification"), "TrainingImage"),
        instance_type=read_text(resources, "InstanceType"),
        instance_count=_read_integer(resources, "InstanceCount"),
        instance_groups=tuple(
            (
                read_text(group, "InstanceGroupName"),
                read_text(group, "InstanceType"),
                _read_integer(group, "InstanceCount") or 0,
            )
            for group in read_structures(resources, "InstanceGroups")
        ),
    )


def decode_tags(fields: Fields) -> dict[str, str]:
    """Return the tags of one page of ListTags."""
    return {read_text(tag, "Key"): read_text(tag, "Value") for tag in read_structures(fields, "Tags")}


def read_text(fields: Fields, key: str) -> str:
    """Return a field that is a string; "" if it is absent."""
    value = fields.get(key)
    return value if isinstance(value, str) else ""


def read_structures(fields: Fields, key: str) -> tuple[Fields, ...]:
    """Return a field that is a list of structures; empty if it is absent."""
    value = fields.get(key)
    return tuple(item for item in value if isinstance(item, Mapping)) if isinstance(value, list) else ()


def _decode_transition(fields: Fields) -> SecondaryStatusTransition:
    return SecondaryStatusTransition(
        status=read_text(fields, "Status"),
        started_at=_read_required_time(fields, "StartTime"),
        ended_at=_read_time(fields, "EndTime"),
        message=read_text(fields, "StatusMessage"),
    )


def _decode_metric(fields: Fields) -> FinalMetric:
    value = fields.get("Value")
    return FinalMetric(
        name=read_text(fields, "MetricName"),
        value=float(value) if isinstance(value, int | float) else float("nan"),
        at=_read_required_time(fields, "Timestamp"),
    )


def _read_mapping(fields: Fields, key: str) -> Fields:
    value = fields.get(key)
    return value if isinstance(value, Mapping) else {}


def _read_integer(fields: Fields, key: str) -> int | None:
    value = fields.get(key)
    return value if isinstance(value, int) else None


def _read_time(fields: Fields, key: str) -> datetime | None:
    value = fields.get(key)
    return value if isinstance(value, datetime) else None


def _read_required_time(fields: Fields, key: str) -> datetime:
    value = _read_time(fields, key)
    if value is None:
        raise Unavailable(f"The response about a training job has no {key}, so it does not come from SageMaker.")
    return value


def _read_modification_time(fields: Fields) -> datetime:
    # The service's model doesn't guarantee LastModifiedTime.
    return _read_time(fields, "LastModifiedTime") or _read_required_time(fields, "CreationTime")
