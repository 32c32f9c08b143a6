"""A training job as SageMaker describes it (botocore's service model of 2017-07-24)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

ENDED = frozenset({"Completed", "Failed", "Stopped"})
"""The statuses that no other follows. `Stopping` and `Deleting` are none of them."""


@dataclass(frozen=True)
class Summary:
    """What ListTrainingJobs says of one. `secondary_status` is "" where the service leaves it out."""

    name: str
    arn: str
    status: str
    secondary_status: str
    created_at: datetime
    modified_at: datetime


@dataclass(frozen=True)
class Transition:
    """A secondary status that the job was in, or (no `ended_at`) is in."""

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
    """What DescribeTrainingJob says of one. "", None and () where it says nothing; seconds are whole."""

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
    """Name, instance type and count of each; then `instance_type` and `instance_count` are not told."""

    @property
    def has_ended(self) -> bool:
        """Whether it will never change again."""
        return self.status in ENDED
