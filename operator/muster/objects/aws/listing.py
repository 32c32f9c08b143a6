"""Filters and pages of a listing of training jobs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from muster.objects.aws.training_job import Summary


@dataclass(frozen=True)
class Since:
    """List only jobs modified and created after these times (None: any), by the service's clock."""

    modified: datetime | None = None
    created: datetime | None = None


@dataclass(frozen=True)
class Page:
    """A page of a listing; `more` is the next page's token, or "". `at` is the service's time if known."""

    summaries: tuple[Summary, ...]
    more: str
    at: datetime | None
