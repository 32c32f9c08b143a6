"""List the training jobs of a region periodically, and describe those that changed."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from typing import Protocol

from muster.clients.aws.backoff import compute_backoff
from muster.clients.aws.observations import ListingRange, Observation, Observations
from muster.objects.aws.errors import AwsError, Invalid, NotFound
from muster.objects.aws.listing import ListFilter, Page
from muster.objects.aws.refusal_streak import RefusalStreak
from muster.objects.aws.training_job import TrainingJobDescription

LIST_SECONDS = 15.0
"""The interval of listings. A listing of 1,000 changed jobs, which are ten pages, takes 5 seconds."""

FULL_LIST_SECONDS = 600.0
"""The interval of listings of all jobs, which find missed changes and deleted jobs."""

DESCRIPTION_WAIT_SECONDS = 2.0
"""The time that a changed job's description may take. After it, the poller reports the change from the listing."""

DESCRIBERS = 4
"""The maximum number of concurrent descriptions: the quota allows this many at usual response times."""

TOLERATED_FAILURES = 3
"""Temporary failures are reported only after this many in a row."""

_log = logging.getLogger(__name__)


class TrainingJobRequests(Protocol):
    """Sends the requests of a poller (TrainingJobs)."""

    async def list_page(self, since: ListFilter, next_token: str = "") -> Page:
        """Return a page of the listing."""

    async def describe(self, name: str) -> TrainingJobDescription:
        """Describe one job."""


class Watch:
    """A watch of one job."""

    def __init__(self, name: str, poller: TrainingJobPoller, on_change: Callable[[], None]) -> None:
        self.name = name
        self.on_change = on_change
        self._poller = poller

    @property
    def observation(self) -> Observation:
        """The observed state of the job."""
        return self._poller.observations.get(self.name)

    @property
    def problem(self) -> AwsError | None:
        """The error that prevents observations of all jobs of the poller, if any."""
        return self._poller.problem

    @property
    def refused_seconds(self) -> float:
        """How long AWS has rejected the requests of `problem`, in seconds."""
        return self._poller.refused_seconds

    def describe_soon(self) -> None:
        """Request a description, because muster has changed the job."""
        self._poller.describe_soon(self.name)

    def close(self) -> None:
        """Stop watching the job."""
        self._poller.unwatch(self)


class TrainingJobPoller:
    """Observes the watched jobs of one region and role while `run` runs. Other methods may also be called before `run`.

    `on_unused` is called after the last watch is closed; `jitter` returns a random number from 0 to 1.
    """

    def __init__(
        self, jobs: TrainingJobRequests, aws_access: object, on_unused: Callable[[], None], jitter: Callable[[], float]
    ) -> None:
        self.observations = Observations()
        self._jobs = jobs
        self._aws_access = aws_access
        self._on_unused = on_unused
        self._jitter = jitter
        self._watches: dict[str, Watch] = {}
        self._has_watches = asyncio.Event()
        self._has_requests = asyncio.Event()
        self._listing_range = ListingRange()
        self._full_listing_at = float("-inf")
        self._failures: Counter[str] = Counter()
        self._problems: dict[str, AwsError] = {}
        self._refusals: dict[str, RefusalStreak] = {}

    @property
    def problem(self) -> AwsError | None:
        """The first error that is permanent or has lasted for some time, if any."""
        return next(iter(self._problems.values()), None)

    @property
    def refused_seconds(self) -> float:
        """How long AWS has rejected the requests of `problem`, in seconds."""
        operation = next(iter(self._problems), "")
        return self._refusals.get(operation, RefusalStreak()).seconds

    def watch(self, name: str, since: datetime, on_change: Callable[[], None]) -> Watch:
        """Watch a job that was or will be created after `since`. Replaces an earlier watch of the same job.

        `on_change` is called in the event loop when the job's observed state or `problem` changes.
        """
        watch = self._watches[name] = Watch(name, self, on_change)
        # A description shows the changes before this watch; later listings start at `since`.
        self.observations.add(name, since)
        self._has_watches.set()
        self._has_requests.set()
        return watch

    def unwatch(self, watch: Watch) -> None:
        """Stop watching the job, unless a newer watch has replaced this watch."""
        if self._watches.get(watch.name) is not watch:
            return
        del self._watches[watch.name]
        self.observations.drop(watch.name)
        if not self._watches:
            self._on_unused()

    def describe_soon(self, name: str) -> None:
        """Request a description of a watched job."""
        self.observations.request_description(name)
        self._has_requests.set()

    async def run(self) -> None:
        """List and describe jobs, until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._list_forever())
                for _ in range(DESCRIBERS):
                    group.create_task(self._describe_forever())
        finally:
            # Delayed calls must not notify watches any more.
            self._watches.clear()

    async def _list_forever(self) -> None:
        clock = asyncio.get_running_loop().time
        await self._has_watches.wait()
        while True:
            started_at = clock()
            if started_at - self._full_listing_at >= FULL_LIST_SECONDS:
                self._listing_range = ListingRange()
            is_full = self._listing_range.listed_until is None
            try:
                if await self._list() and is_full:
                    self._full_listing_at = started_at
            except Exception:  # noqa: BLE001 - a failed listing must not end the loop
                _log.exception("%s: unexpected error; muster will list again", self._aws_access)
            await asyncio.sleep(max(0.0, started_at + LIST_SECONDS - clock()))

    async def _list(self) -> bool:
        """List all pages once; return whether the listing is complete."""
        listing_range = self._listing_range
        since = listing_range.build_filter(self.observations.find_oldest_creation())
        first: Page | None = None
        names: set[str] = set()
        token = ""
        while True:
            page = await self._fetch_page(since, token)
            if page is None:
                return False
            first = first or page
            names.update(summary.name for summary in page.summaries)
            self._handle_page(page)
            token = page.next_token
            if not token:
                break
        if listing_range.listed_until is None:
            self.observations.describe_unlisted(frozenset(names))
            self._has_requests.set()
        self._listing_range = listing_range.advance(first)
        return True

    async def _fetch_page(self, since: ListFilter, next_token: str) -> Page | None:
        """Return a page, with retries; None if the listing must start again."""
        while True:
            try:
                page = await self._jobs.list_page(since, next_token)
            except AwsError as error:
                await self._handle_failure("ListTrainingJobs", error)
                if next_token and isinstance(error, Invalid):
                    # The page token may have expired: AWS doesn't document its lifetime.
                    return None
            else:
                self._handle_success("ListTrainingJobs")
                return page

    def _handle_page(self, page: Page) -> None:
        call_later = asyncio.get_running_loop().call_later
        for summary in page.summaries:
            if self.observations.record_summary(summary):
                call_later(DESCRIPTION_WAIT_SECONDS, self._notify_undescribed, summary.name)
        self._has_requests.set()

    def _notify_undescribed(self, name: str) -> None:
        observation = self.observations.get(name)
        if observation.latest is not observation.description:
            self._notify(name)

    async def _describe_forever(self) -> None:
        while True:
            name = self.observations.pop_request()
            if name is None:
                self._has_requests.clear()
                await self._has_requests.wait()
            else:
                await self._describe(name)

    async def _describe(self, name: str) -> None:
        try:
            has_changed = self.observations.record_description(await self._jobs.describe(name))
        except NotFound:
            has_changed = self.observations.record_missing(name)
        except AwsError as error:
            await self._handle_failure("DescribeTrainingJob", error)
            self.describe_soon(name)
            return
        except Exception:  # noqa: BLE001 - one job must not end the loop
            # The next change of the job triggers another description.
            _log.exception("%s: unexpected error; muster could not describe %s", self._aws_access, name)
            return
        self._handle_success("DescribeTrainingJob")
        if has_changed:
            self._notify(name)

    async def _handle_failure(self, operation: str, error: AwsError) -> None:
        self._failures[operation] += 1
        failures = self._failures[operation]
        now = asyncio.get_running_loop().time()
        self._refusals[operation] = self._refusals.get(operation, RefusalStreak()).add_failure(error, now)
        _log.log(
            logging.WARNING if failures > TOLERATED_FAILURES else logging.INFO,
            "%s: %s",
            self._aws_access,
            error.message,
        )
        if failures > TOLERATED_FAILURES or not error.is_retryable:
            entry = self._problems.get(operation)
            self._problems[operation] = error
            if entry is None or entry.message != error.message:
                self._notify_all()
        # The random part spreads the retries of pollers that failed together.
        await asyncio.sleep(compute_backoff(failures, error, self._jitter()))

    def _handle_success(self, operation: str) -> None:
        self._failures[operation] = 0
        self._refusals.pop(operation, None)
        if self._problems.pop(operation, None) is not None:
            self._notify_all()

    def _notify_all(self) -> None:
        for name in tuple(self._watches):
            self._notify(name)

    def _notify(self, name: str) -> None:
        watch = self._watches.get(name)
        if watch is None:
            return
        try:
            watch.on_change()
        except Exception:  # noqa: BLE001 - one failing callback must not affect the others
            _log.exception("%s: the callback for %s failed", self._aws_access, name)
