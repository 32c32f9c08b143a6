"""A training job in SageMaker's responses (botocore's service model of 2017-07-24)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

FINAL_STATUSES = frozenset({"Completed", "Failed", "Stopped"})
"""The final statuses. `Stopping` and `Deleting` are not final."""


@dataclass(frozen=True)
class TrainingJobSummary:
    """A job in the response of ListTrainingJobs. `secondary_status` may be ""."""

    name: str
    arn: str
    status: str
    secondary_status: str
    created_at: datetime
    modified_at: datetime


@dataclass(frozen=True)
class SecondaryStatusTransition:
    """A secondary status that the job had, or has now if `ended_at` is None."""

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
class TrainingJobDescription(TrainingJobSummary):
    """A response of DescribeTrainingJob. Absent values are "", None or ()."""

    started_at: datetime | None = None
    ended_at: datetime | None = None
    failure_reason: str = ""
    transitions: tuple[SecondaryStatusTransition, ...] = ()
    metrics: tuple[FinalMetric, ...] = ()
    training_seconds: int | None = None
    billable_seconds: int | None = None
    image: str = ""
    instance_type: str = ""
    instance_count: int | None = None
    instance_groups: tuple[tuple[str, str, int], ...] = ()
    """The name, the instance type and the count of each group. With groups, the two fields above are absent."""

    @property
    def has_ended(self) -> bool:
        """Whether the job's status is final."""
        return self.status in FINAL_STATUSES
