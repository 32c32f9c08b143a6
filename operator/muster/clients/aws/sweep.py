"""List the training jobs of a place periodically, and describe those that changed."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from typing import Protocol

from muster.clients.aws.backoff import backoff_seconds
from muster.clients.aws.observations import ListingRange, Observation, Observations
from muster.objects.aws.errors import AwsError, Invalid, NotFound
from muster.objects.aws.listing import Page, Since
from muster.objects.aws.refused_row import RefusedRow
from muster.objects.aws.training_job import Description

SWEEP_SECONDS = 15.0
"""The time between the starts of two listings: ten pages, that is 1,000 changed jobs, take 5 seconds."""

FULL_SECONDS = 600.0
"""The time between two listings of all jobs, which detect missed changes and deleted jobs."""

HEAD_START_SECONDS = 2.0
"""How long a listed change waits for its description before it is reported."""

DESCRIBERS = 4
"""Maximum concurrent descriptions: the quota allows this many at usual response times."""

TOLERATED_FAILURES = 3
"""Consecutive temporary failures that are not reported."""

_log = logging.getLogger(__name__)


class TrainingJobRequests(Protocol):
    """The requests of a sweep (TrainingJobs)."""

    async def page(self, since: Since, more: str = "") -> Page:
        """A page of the listing."""

    async def describe(self, name: str) -> Description:
        """Describe one job."""


class Watch:
    """A watch on one job."""

    def __init__(self, name: str, sweep: Sweep, on_change: Callable[[], None]) -> None:
        self.name = name
        self.on_change = on_change
        self._sweep = sweep

    @property
    def observation(self) -> Observation:
        """The observed state of the job."""
        return self._sweep.observations.of(self.name)

    @property
    def problem(self) -> AwsError | None:
        """The error that prevents updates about all jobs in this place; None if there is none."""
        return self._sweep.problem

    @property
    def refused_seconds(self) -> float:
        """How long AWS has rejected the requests of `problem`."""
        return self._sweep.refused_seconds

    def describe_soon(self) -> None:
        """Request a description, because muster has changed the job."""
        self._sweep.describe_soon(self.name)

    def close(self) -> None:
        """Stop watching."""
        self._sweep.unwatch(self)


class Sweep:
    """Follows the watched jobs of one place while `run` runs; the other methods may be called before.

    `on_unused` is called after the last watch is closed; `chance` returns numbers from 0 to 1.
    """

    def __init__(
        self, jobs: TrainingJobRequests, place: object, on_unused: Callable[[], None], chance: Callable[[], float]
    ) -> None:
        self.observations = Observations()
        self._jobs = jobs
        self._place = place
        self._on_unused = on_unused
        self._chance = chance
        self._watches: dict[str, Watch] = {}
        self._watched = asyncio.Event()
        self._wanted = asyncio.Event()
        self._reach = ListingRange()
        self._full_at = float("-inf")
        self._failures: Counter[str] = Counter()
        self._problems: dict[str, AwsError] = {}
        self._refused: dict[str, RefusedRow] = {}

    @property
    def problem(self) -> AwsError | None:
        """An error that is permanent, or has lasted for some time."""
        return next(iter(self._problems.values()), None)

    @property
    def refused_seconds(self) -> float:
        """How long AWS has rejected the requests of `problem`."""
        operation = next(iter(self._problems), "")
        return self._refused.get(operation, RefusedRow()).seconds

    def watch(self, name: str, since: datetime, on_change: Callable[[], None]) -> Watch:
        """Watch a job that was (or will be) created after `since`; the clock may be wrong by some minutes.

        `on_change` is called, in the event loop, when the job's observed state changes, or `problem` begins or ends. It
        replaces an earlier watch on the same name.
        """
        watch = self._watches[name] = Watch(name, self, on_change)
        # The description has changes before this watch; later listings go back to `since`.
        self.observations.add(name, since)
        self._watched.set()
        self._wanted.set()
        return watch

    def unwatch(self, watch: Watch) -> None:
        """Stop following the job, unless a newer watch has replaced this one."""
        if self._watches.get(watch.name) is not watch:
            return
        del self._watches[watch.name]
        self.observations.drop(watch.name)
        if not self._watches:
            self._on_unused()

    def describe_soon(self, name: str) -> None:
        """Request a description of a watched job."""
        self.observations.want(name)
        self._wanted.set()

    async def run(self) -> None:
        """Run until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._list_forever())
                for _ in range(DESCRIBERS):
                    group.create_task(self._describe_forever())
        finally:
            # Delayed calls must notify no watches.
            self._watches.clear()

    async def _list_forever(self) -> None:
        clock = asyncio.get_running_loop().time
        await self._watched.wait()
        while True:
            began = clock()
            if began - self._full_at >= FULL_SECONDS:
                self._reach = ListingRange()
            is_full = self._reach.seen_until is None
            try:
                if await self._list() and is_full:
                    self._full_at = began
            except Exception:  # noqa: BLE001 - a failed listing must not end the loop
                _log.exception("%s: unexpected error; muster will list again", self._place)
            await asyncio.sleep(max(0.0, began + SWEEP_SECONDS - clock()))

    async def _list(self) -> bool:
        """List once; return whether the listing is complete."""
        reach = self._reach
        since = reach.since(self.observations.oldest())
        first: Page | None = None
        names: set[str] = set()
        token = ""
        while True:
            page = await self._page(since, token)
            if page is None:
                return False
            first = first or page
            names.update(summary.name for summary in page.summaries)
            self._handle_page(page)
            token = page.more
            if not token:
                break
        if reach.seen_until is None:
            self.observations.absent(frozenset(names))
            self._wanted.set()
        self._reach = reach.after(first)
        return True

    async def _page(self, since: Since, more: str) -> Page | None:
        """Get a page, with retries; None if the listing must start again."""
        while True:
            try:
                page = await self._jobs.page(since, more)
            except AwsError as error:
                await self._failed("ListTrainingJobs", error)
                if more and isinstance(error, Invalid):
                    # The token may have expired: AWS does not document its lifetime.
                    return None
            else:
                self._succeeded("ListTrainingJobs")
                return page

    def _handle_page(self, page: Page) -> None:
        call_later = asyncio.get_running_loop().call_later
        for summary in page.summaries:
            if self.observations.listed(summary):
                call_later(HEAD_START_SECONDS, self._notify_undescribed, summary.name)
        self._wanted.set()

    def _notify_undescribed(self, name: str) -> None:
        observation = self.observations.of(name)
        if observation.latest is not observation.description:
            self._notify(name)

    async def _describe_forever(self) -> None:
        while True:
            name = self.observations.next_requested()
            if name is None:
                self._wanted.clear()
                await self._wanted.wait()
            else:
                await self._describe(name)

    async def _describe(self, name: str) -> None:
        try:
            is_news = self.observations.described(await self._jobs.describe(name))
        except NotFound:
            is_news = self.observations.missing(name)
        except AwsError as error:
            await self._failed("DescribeTrainingJob", error)
            self.describe_soon(name)
            return
        except Exception:  # noqa: BLE001 - as above
            # The next change of the job triggers another description.
            _log.exception("%s: unexpected error; muster could not describe %s", self._place, name)
            return
        self._succeeded("DescribeTrainingJob")
        if is_news:
            self._notify(name)

    async def _failed(self, operation: str, error: AwsError) -> None:
        self._failures[operation] += 1
        failures = self._failures[operation]
        now = asyncio.get_running_loop().time()
        self._refused[operation] = self._refused.get(operation, RefusedRow()).after(error, now)
        _log.log(
            logging.WARNING if failures > TOLERATED_FAILURES else logging.INFO, "%s: %s", self._place, error.message
        )
        if failures > TOLERATED_FAILURES or not error.may_pass:
            entry = self._problems.get(operation)
            self._problems[operation] = error
            if entry is None or entry.message != error.message:
                self._notify_all()
        # The random part spreads the retries of places that failed together.
        await asyncio.sleep(backoff_seconds(failures, error, self._chance()))

    def _succeeded(self, operation: str) -> None:
        self._failures[operation] = 0
        self._refused.pop(operation, None)
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
            _log.exception("%s: the callback for %s failed", self._place, name)
