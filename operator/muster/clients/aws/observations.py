"""Track the observed state of watched training jobs, and choose the next job to describe. No I/O."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from muster.objects.aws.listing import Page, Since
from muster.objects.aws.training_job import ENDED, Description, Summary, Transition

CLOCKS_DIFFER = timedelta(minutes=15)
"""AWS refuses requests whose clock is off by more than this (SigV4, "Request has expired")."""

OVERLAP = timedelta(seconds=60)
"""Each listing overlaps the previous one by this time, because listings may lag behind."""


@dataclass(frozen=True)
class Observation:
    """The last observed state of a job. `is_missing`: SageMaker reports that the job does not exist (yet)."""

    summary: Summary | None = None
    description: Description | None = None
    is_missing: bool = False

    @property
    def latest(self) -> Summary | None:
        """The newer of summary and description: a listing may show a change before a description does."""
        if self.summary is None or self.description is None:
            return self.description or self.summary
        return self.summary if self.summary.modified_at > self.description.modified_at else self.description

    @property
    def present(self) -> Description | None:
        """The description, updated by later listings, for which quotas are higher than for descriptions.

        A final status is only reported with its description, which has the reason.
        """
        current, listed = self.description, self.summary
        if current is None or listed is None or listed.modified_at <= current.modified_at or listed.status in ENDED:
            return current
        transitions = current.transitions
        if listed.secondary_status and listed.secondary_status != current.secondary_status:
            before = tuple(replace(step, ended_at=step.ended_at or listed.modified_at) for step in transitions)
            transitions = (*before, Transition(listed.secondary_status, listed.modified_at, None, ""))
        return replace(
            current,
            status=listed.status,
            secondary_status=listed.secondary_status or current.secondary_status,
            modified_at=listed.modified_at,
            transitions=transitions,
        )


@dataclass
class _WatchedJob:
    since: datetime
    observation: Observation = field(default_factory=Observation)


class Observations:
    """Jobs by name. Other jobs in listings are ignored."""

    def __init__(self) -> None:
        self._jobs: dict[str, _WatchedJob] = {}
        self._wanted: dict[str, tuple[int, int]] = {}
        self._order = itertools.count()

    def add(self, name: str, since: datetime) -> None:
        """Start watching a job that was created after `since`."""
        if name not in self._jobs:
            self._jobs[name] = _WatchedJob(since)
            self.want(name)

    def drop(self, name: str) -> None:
        """Stop watching a job."""
        self._jobs.pop(name, None)
        self._wanted.pop(name, None)

    def of(self, name: str) -> Observation:
        """The observed state of a job; an empty one if it isn't watched."""
        job = self._jobs.get(name)
        return Observation() if job is None else job.observation

    def oldest(self) -> datetime | None:
        """Return the earliest creation time of watched jobs; None if there are none."""
        return min((job.since for job in self._jobs.values()), default=None)

    def listed(self, summary: Summary) -> bool:
        """Record a job of a listing; return whether a watched job has changed."""
        job = self._jobs.get(summary.name)
        if job is None:
            return False
        before = job.observation
        if before.summary is not None and before.summary.modified_at > summary.modified_at:
            # This listing is older, or from a replica that lags behind.
            return False
        job.observation = replace(before, summary=summary, is_missing=False)
        described = before.description
        if described is None or described.modified_at < summary.modified_at or described.status != summary.status:
            self.want(summary.name)
        return _observed_state(job.observation) != _observed_state(before)

    def described(self, description: Description) -> bool:
        """Record a description; return whether a watched job has changed."""
        job = self._jobs.get(description.name)
        if job is None:
            return False
        before = job.observation
        if before.description is not None and before.description.modified_at > description.modified_at:
            return False
        job.observation = replace(before, description=description, is_missing=False)
        return job.observation != before

    def missing(self, name: str) -> bool:
        """Record that the job does not exist; return whether that is new."""
        job = self._jobs.get(name)
        if job is None or job.observation.is_missing:
            return False
        job.observation = Observation(is_missing=True)
        return True

    def absent(self, listed: frozenset[str]) -> None:
        """Request descriptions of the watched jobs that are missing in a complete listing."""
        for name in self._jobs:
            if name not in listed:
                self.want(name)

    def want(self, name: str) -> None:
        """Request a description: ended jobs first, then newly watched ones."""
        job = self._jobs.get(name)
        if job is None:
            return
        summary = job.observation.summary
        has_ended = summary is not None and summary.status in ENDED
        is_new = job.observation.description is None
        urgency = 0 if has_ended else 1 if is_new else 2
        waiting = self._wanted.get(name)
        turn = next(self._order) if waiting is None else waiting[1]
        self._wanted[name] = (urgency, turn)

    def next_requested(self) -> str | None:
        """Remove and return the next job to describe; None if there is none."""
        name = min(self._wanted, key=self._wanted.__getitem__, default=None)
        if name is not None:
            del self._wanted[name]
        return name


def _observed_state(observation: Observation) -> tuple[str, str, bool] | None:
    latest = observation.latest
    return None if latest is None else (latest.status, latest.secondary_status, observation.is_missing)


@dataclass(frozen=True)
class ListingRange:
    """The time range of the next listing. Earlier listings have all changes before `seen_until` (None: none)."""

    seen_until: datetime | None = None

    def since(self, oldest: datetime | None) -> Since:
        """The filter of the next listing; no watched job was created before `oldest`.

        The service reads every job of the account that the creation time doesn't exclude, even if it returns no job
        (aws/aws-sdk#486).
        """
        created = None if oldest is None else oldest - CLOCKS_DIFFER
        modified = None if self.seen_until is None else self.seen_until - OVERLAP
        return Since(modified, created)

    def after(self, first: Page) -> ListingRange:
        """Return the range after a complete listing with this first page."""
        # Use the first page's time, by the service's clock: its jobs may have changed since then.
        return self if first.at is None else ListingRange(first.at)
