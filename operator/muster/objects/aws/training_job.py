"""A training job as SageMaker describes it (botocore's service model of 2017-07-24)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

ENDED = frozenset({"Completed", "Failed", "Stopped"})
"""The final statuses. `Stopping` and `Deleting` are not final."""


@dataclass(frozen=True)
class Summary:
    """A job in the response of ListTrainingJobs. `secondary_status` is "" if the service omits it."""

    name: str
    arn: str
    status: str
    secondary_status: str
    created_at: datetime
    modified_at: datetime


@dataclass(frozen=True)
class Transition:
    """A past or (without `ended_at`) current secondary status of the job."""

    status: str
    started_at: datetime
    ended_at: datetime | None
    message: str


@dataclass(frozen=True)
class FinalMetric:
    """The last value of a metric that SageMaker read from the job's output."""

    name: str
    value: float
    at: datetime


@dataclass(frozen=True)
class Description(Summary):
    """A response of DescribeTrainingJob. "", None and () for absent values; seconds are whole."""

    started_at: datetime | None = None
    ended_at: datetime | None = None
    failure_reason: str = ""
    transitions: tuple[Transition, ...] = ()
    metrics: tuple[FinalMetric, ...] = ()
    training_seconds: int | None = None
    billable_seconds: int | None = None
    image: str = ""
    instance_type: str = ""
    instance_count: int | None = None
    instance_groups: tuple[tuple[str, str, int], ...] = ()
    """Name, instance type and count of each group; then `instance_type` and `instance_count` are absent."""

    @property
    def has_ended(self) -> bool:
        """Whether the job's status is final."""
        return self.status in ENDED
