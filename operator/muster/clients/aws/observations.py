"""Record the observed states of watched training jobs, and choose the next job to describe. No I/O."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from muster.objects.aws.listing import ListFilter, Page
from muster.objects.aws.training_job import (
    FINAL_STATUSES,
    SecondaryStatusTransition,
    TrainingJobDescription,
    TrainingJobSummary,
)

MAX_CLOCK_DIFFERENCE = timedelta(minutes=15)
"""AWS refuses requests of clients whose clocks differ by more than this (SigV4, "Request has expired")."""

OVERLAP = timedelta(seconds=60)
"""Each listing overlaps the previous one by this time, because listings may be some seconds old."""


@dataclass(frozen=True)
class Observation:
    """The last observed state of a job. `is_missing`: SageMaker reports that the job doesn't exist."""

    summary: TrainingJobSummary | None = None
    description: TrainingJobDescription | None = None
    is_missing: bool = False

    @property
    def latest(self) -> TrainingJobSummary | None:
        """The newer one of the summary and the description."""
        if self.summary is None or self.description is None:
            return self.description or self.summary
        return self.summary if self.summary.modified_at > self.description.modified_at else self.description

    @property
    def present(self) -> TrainingJobDescription | None:
        """The description with the status of later listings.

        A final status comes only from a description, because a listing lacks the reason.
        """
        description, summary = self.description, self.summary
        if description is None or summary is None:
            return description
        if summary.modified_at <= description.modified_at or summary.status in FINAL_STATUSES:
            return description
        transitions = description.transitions
        if summary.secondary_status and summary.secondary_status != description.secondary_status:
            earlier = tuple(replace(step, ended_at=step.ended_at or summary.modified_at) for step in transitions)
            transitions = (*earlier, SecondaryStatusTransition(summary.secondary_status, summary.modified_at, None, ""))
        return replace(
            description,
            status=summary.status,
            secondary_status=summary.secondary_status or description.secondary_status,
            modified_at=summary.modified_at,
            transitions=transitions,
        )


@dataclass
class _WatchedJob:
    since: datetime
    observation: Observation = field(default_factory=Observation)


class Observations:
    """The watched jobs by name. Other jobs in listings are ignored."""

    def __init__(self) -> None:
        self._jobs: dict[str, _WatchedJob] = {}
        self._requests: dict[str, tuple[int, int]] = {}
        self._order = itertools.count()

    def add(self, name: str, since: datetime) -> None:
        """Start watching a job that was created after `since`."""
        if name not in self._jobs:
            self._jobs[name] = _WatchedJob(since)
            self.request_description(name)

    def drop(self, name: str) -> None:
        """Stop watching a job."""
        self._jobs.pop(name, None)
        self._requests.pop(name, None)

    def get(self, name: str) -> Observation:
        """Return the observed state of a job. It is empty if the job isn't watched."""
        job = self._jobs.get(name)
        return Observation() if job is None else job.observation

    def find_oldest_creation(self) -> datetime | None:
        """Return the earliest creation time of all watched jobs; None without any."""
        return min((job.since for job in self._jobs.values()), default=None)

    def record_summary(self, summary: TrainingJobSummary) -> bool:
        """Record a job of a listing; return whether a watched job has changed."""
        job = self._jobs.get(summary.name)
        if job is None:
            return False
        previous = job.observation
        if previous.summary is not None and previous.summary.modified_at > summary.modified_at:
            # This listing is older than the last one.
            return False
        job.observation = replace(previous, summary=summary, is_missing=False)
        last = previous.description
        if last is None or last.modified_at < summary.modified_at or last.status != summary.status:
            self.request_description(summary.name)
        return _get_observed_state(job.observation) != _get_observed_state(previous)

    def record_description(self, description: TrainingJobDescription) -> bool:
        """Record a description; return whether a watched job has changed."""
        job = self._jobs.get(description.name)
        if job is None:
            return False
        previous = job.observation
        if previous.description is not None and previous.description.modified_at > description.modified_at:
            return False
        job.observation = replace(previous, description=description, is_missing=False)
        return job.observation != previous

    def record_missing(self, name: str) -> bool:
        """Record that the job doesn't exist; return whether this is a change."""
        job = self._jobs.get(name)
        if job is None or job.observation.is_missing:
            return False
        job.observation = Observation(is_missing=True)
        return True

    def describe_unlisted(self, listed_names: frozenset[str]) -> None:
        """Request descriptions of the watched jobs that a complete listing lacks."""
        for name in self._jobs:
            if name not in listed_names:
                self.request_description(name)

    def request_description(self, name: str) -> None:
        """Request a description. Ended jobs are described first, then newly watched jobs."""
        job = self._jobs.get(name)
        if job is None:
            return
        summary = job.observation.summary
        has_ended = summary is not None and summary.status in FINAL_STATUSES
        is_new = job.observation.description is None
        urgency = 0 if has_ended else 1 if is_new else 2
        earlier = self._requests.get(name)
        position = next(self._order) if earlier is None else earlier[1]
        self._requests[name] = (urgency, position)

    def pop_request(self) -> str | None:
        """Remove and return the name of the next job to describe; None without any."""
        name = min(self._requests, key=self._requests.__getitem__, default=None)
        if name is not None:
            del self._requests[name]
        return name


def _get_observed_state(observation: Observation) -> tuple[str, str, bool] | None:
    latest = observation.latest
    return None if latest is None else (latest.status, latest.secondary_status, observation.is_missing)


@dataclass(frozen=True)
class ListingRange:
    """The time range of the next listing. Earlier listings contain all changes before `listed_until` (None: none)."""

    listed_until: datetime | None = None

    def build_filter(self, oldest: datetime | None) -> ListFilter:
        """Return the filter of the next listing; no watched job was created before `oldest`.

        Without a creation time, SageMaker would read all jobs of the account (aws/aws-sdk#486).
        """
        created = None if oldest is None else oldest - MAX_CLOCK_DIFFERENCE
        modified = None if self.listed_until is None else self.listed_until - OVERLAP
        return ListFilter(modified, created)

    def advance(self, first: Page) -> ListingRange:
        """Return the range after a complete listing with this first page."""
        # The time of the first page by SageMaker's clock: jobs may have changed since then.
        return self if first.at is None else ListingRange(first.at)
