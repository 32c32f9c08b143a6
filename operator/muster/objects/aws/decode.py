"""Convert SageMaker's responses to muster's types. Pure. A value of an unexpected type counts as absent."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TypeAlias

from muster.objects.aws.errors import Unavailable
from muster.objects.aws.training_job import Description, FinalMetric, Summary, Transition

Fields: TypeAlias = Mapping[str, object]


def summary(fields: Fields) -> Summary:
    """Convert a TrainingJobSummary. Raises Unavailable if the response isn't SageMaker's."""
    return Summary(
        name=text(fields, "TrainingJobName"),
        arn=text(fields, "TrainingJobArn"),
        status=text(fields, "TrainingJobStatus"),
        secondary_status=text(fields, "SecondaryStatus"),
        created_at=_required_time(fields, "CreationTime"),
        modified_at=_modified(fields),
    )


def description(fields: Fields) -> Description:
    """Convert a DescribeTrainingJobResponse. Raises Unavailable if the response isn't SageMaker's."""
    resources = _mapping(fields, "ResourceConfig")
    return Description(
        **vars(summary(fields)),
        started_at=_time(fields, "TrainingStartTime"),
        ended_at=_time(fields, "TrainingEndTime"),
        failure_reason=text(fields, "FailureReason"),
        transitions=tuple(_transition(item) for item in objects(fields, "SecondaryStatusTransitions")),
        metrics=tuple(_metric(item) for item in objects(fields, "FinalMetricDataList")),
        training_seconds=_integer(fields, "TrainingTimeInSeconds"),
        billable_seconds=_integer(fields, "BillableTimeInSeconds"),
        image=text(_mapping(fields, "AlgorithmSpecification"), "TrainingImage"),
        instance_type=text(resources, "InstanceType"),
        instance_count=_integer(resources, "InstanceCount"),
        instance_groups=tuple(
            (text(group, "InstanceGroupName"), text(group, "InstanceType"), _integer(group, "InstanceCount") or 0)
            for group in objects(resources, "InstanceGroups")
        ),
    )


def tags(fields: Fields) -> dict[str, str]:
    """Return the tags of one page of ListTags."""
    return {text(tag, "Key"): text(tag, "Value") for tag in objects(fields, "Tags")}


def text(fields: Fields, key: str) -> str:
    """Return a field that is a string; "" if it is absent."""
    value = fields.get(key)
    return value if isinstance(value, str) else ""


def objects(fields: Fields, key: str) -> tuple[Fields, ...]:
    """Return a field that is a list of structures; empty if it is absent."""
    value = fields.get(key)
    return tuple(item for item in value if isinstance(item, Mapping)) if isinstance(value, list) else ()


def _transition(fields: Fields) -> Transition:
    return Transition(
        status=text(fields, "Status"),
        started_at=_required_time(fields, "StartTime"),
        ended_at=_time(fields, "EndTime"),
        message=text(fields, "StatusMessage"),
    )


def _metric(fields: Fields) -> FinalMetric:
    value = fields.get("Value")
    return FinalMetric(
        name=text(fields, "MetricName"),
        value=float(value) if isinstance(value, int | float) else float("nan"),
        at=_required_time(fields, "Timestamp"),
    )


def _mapping(fields: Fields, key: str) -> Fields:
    value = fields.get(key)
    return value if isinstance(value, Mapping) else {}


def _integer(fields: Fields, key: str) -> int | None:
    value = fields.get(key)
    return value if isinstance(value, int) else None


def _time(fields: Fields, key: str) -> datetime | None:
    value = fields.get(key)
    return value if isinstance(value, datetime) else None


def _required_time(fields: Fields, key: str) -> datetime:
    value = _time(fields, key)
    if value is None:
        raise Unavailable(f"The response about a training job has no {key}: it is not SageMaker's.")
    return value


def _modified(fields: Fields) -> datetime:
    # The service's model doesn't guarantee LastModifiedTime.
    return _time(fields, "LastModifiedTime") or _required_time(fields, "CreationTime")
