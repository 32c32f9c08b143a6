"""The filter and the pages of a listing of training jobs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from muster.objects.aws.training_job import TrainingJobSummary


@dataclass(frozen=True)
class ListFilter:
    """Select the jobs that were modified and created after these times (None: any time), by SageMaker's clock."""

    modified_after: datetime | None = None
    created_after: datetime | None = None


@dataclass(frozen=True)
class Page:
    """A page of a listing; `at` is the response's time by SageMaker's clock.

    `next_token` is the token for the next page, or "".
    """

    summaries: tuple[TrainingJobSummary, ...]
    next_token: str
    at: datetime | None
