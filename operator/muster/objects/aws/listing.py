"""What a listing of training jobs is asked for, and what comes of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from muster.objects.aws.training_job import Summary


@dataclass(frozen=True)
class Since:
    """Only jobs that were modified, and created, after these times (None: whenever), by the service's clock."""

    modified: datetime | None = None
    created: datetime | None = None


@dataclass(frozen=True)
class Page:
    """A part of a listing, which goes on at `more` ("": it doesn't). `at` is the service's time (None: not told)."""

    summaries: tuple[Summary, ...]
    more: str
    at: datetime | None
