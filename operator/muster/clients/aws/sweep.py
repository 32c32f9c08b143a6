"""One listing after the other for all jobs of a place, and a description of those that changed."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from typing import Protocol

from muster.clients.aws.backoff import backoff_seconds
from muster.clients.aws.observations import Observation, Observations, Reach
from muster.objects.aws.errors import AwsError, Invalid, NotFound
from muster.objects.aws.listing import Page, Since
from muster.objects.aws.refused_row import RefusedRow
from muster.objects.aws.training_job import Description

SWEEP_SECONDS = 15.0
"""From the beginning of one listing to that of the next: ten pages, 1,000 jobs that all changed, take 5 of them."""

FULL_SECONDS = 600.0
"""After so long a listing shows all jobs again, changed or not: what was missed is found, and what is gone."""

HEAD_START_SECONDS = 2.0
"""A change is told once, with all that its description says, unless so many come together that this takes longer."""

DESCRIBERS = 4
"""Descriptions under way at once: as many as their quota lets through at usual answer times."""

PATIENCE = 3
"""So many failures in a row are nothing to speak of, if they may pass."""

_log = logging.getLogger(__name__)


class Jobs(Protocol):
    """What a sweep asks (TrainingJobs)."""

    async def page(self, since: Since, more: str = "") -> Page:
        """A part of the listing."""

    async def describe(self, name: str) -> Description:
        """One job."""


class Watch:
    """A watch on one job."""

    def __init__(self, name: str, sweep: Sweep, on_change: Callable[[], None]) -> None:
        self.name = name
        self.on_change = on_change
        self._sweep = sweep

    @property
    def observation(self) -> Observation:
        """What is known of the job."""
        return self._sweep.observations.of(self.name)

    @property
    def problem(self) -> AwsError | None:
        """Why nothing new is heard of any job of this place."""
        return self._sweep.problem

    @property
    def refused_seconds(self) -> float:
        """For how long the requests that `problem` is about have been refused in a row."""
        return self._sweep.refused_seconds

    def look(self) -> None:
        """Have the job described soon: something was done to it."""
        self._sweep.look(self.name)

    def close(self) -> None:
        """Look away."""
        self._sweep.unwatch(self)


class Sweep:
    """Follows the watched jobs of one place. `run` does it; all else may be called before, too.

    `unneeded` is called when no job is watched any more; `chance` gives numbers from 0 to 1.
    """

    def __init__(self, jobs: Jobs, place: object, unneeded: Callable[[], None], chance: Callable[[], float]) -> None:
        self.observations = Observations()
        self._jobs = jobs
        self._place = place
        self._unneeded = unneeded
        self._chance = chance
        self._watches: dict[str, Watch] = {}
        self._watched = asyncio.Event()
        self._wanted = asyncio.Event()
        self._reach = Reach()
        self._full_at = float("-inf")
        self._failures: Counter[str] = Counter()
        self._problems: dict[str, AwsError] = {}
        self._refused: dict[str, RefusedRow] = {}

    @property
    def problem(self) -> AwsError | None:
        """Why nothing is heard, if that has lasted or won't end by itself."""
        return next(iter(self._problems.values()), None)

    @property
    def refused_seconds(self) -> float:
        """For how long the requests that `problem` is about have been refused in a row."""
        operation = next(iter(self._problems), "")
        return self._refused.get(operation, RefusedRow()).seconds

    def watch(self, name: str, since: datetime, on_change: Callable[[], None]) -> Watch:
        """Follow a job that was (or will be) created after `since`, by any clock that is right to some minutes.

        `on_change` is called, in the event loop, when something new is known of it, or `problem` begins or ends. Who
        watched a job of this name before is no longer told.
        """
        watch = self._watches[name] = Watch(name, self, on_change)
        # Its description tells what listings so far have not; the next ones go back to it.
        self.observations.add(name, since)
        self._watched.set()
        self._wanted.set()
        return watch

    def unwatch(self, watch: Watch) -> None:
        """Stop following the job, unless another watch on it has begun."""
        if self._watches.get(watch.name) is not watch:
            return
        del self._watches[watch.name]
        self.observations.drop(watch.name)
        if not self._watches:
            self._unneeded()

    def look(self, name: str) -> None:
        """Have a watched job described soon."""
        self.observations.want(name)
        self._wanted.set()

    async def run(self) -> None:
        """Go on until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._list_on())
                for _ in range(DESCRIBERS):
                    group.create_task(self._describe_on())
        finally:
            # Some are to be told later.
            self._watches.clear()

    async def _list_on(self) -> None:
        clock = asyncio.get_running_loop().time
        await self._watched.wait()
        while True:
            began = clock()
            if began - self._full_at >= FULL_SECONDS:
                self._reach = Reach()
            is_full = self._reach.seen_until is None
            try:
                if await self._list() and is_full:
                    self._full_at = began
            except Exception:  # noqa: BLE001 - the operator is blind without this
                _log.exception("%s: a mistake in muster; the listing begins anew", self._place)
            await asyncio.sleep(max(0.0, began + SWEEP_SECONDS - clock()))

    async def _list(self) -> bool:
        """One listing: whether it came to its end."""
        reach = self._reach
        since = reach.since(self.observations.oldest())
        first: Page | None = None
        names: set[str] = set()
        more = ""
        while True:
            page = await self._page(since, more)
            if page is None:
                return False
            first = first or page
            names.update(summary.name for summary in page.summaries)
            self._take(page)
            more = page.more
            if not more:
                break
        if reach.seen_until is None:
            self.observations.absent(frozenset(names))
            self._wanted.set()
        self._reach = reach.after(first)
        return True

    async def _page(self, since: Since, more: str) -> Page | None:
        """A page, however long it takes to get it; None: the listing can't be gone on with."""
        while True:
            try:
                page = await self._jobs.page(since, more)
            except AwsError as error:
                await self._failed("ListTrainingJobs", error)
                if more and isinstance(error, Invalid):
                    # How long a token is valid is not documented.
                    return None
            else:
                self._succeeded("ListTrainingJobs")
                return page

    def _take(self, page: Page) -> None:
        tell_later = asyncio.get_running_loop().call_later
        for summary in page.summaries:
            if self.observations.listed(summary):
                tell_later(HEAD_START_SECONDS, self._tell_undescribed, summary.name)
        self._wanted.set()

    def _tell_undescribed(self, name: str) -> None:
        observation = self.observations.of(name)
        if observation.latest is not observation.description:
            self._tell(name)

    async def _describe_on(self) -> None:
        while True:
            name = self.observations.next_wanted()
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
            self.look(name)
            return
        except Exception:  # noqa: BLE001 - as above
            # The next change of the job has it described again.
            _log.exception("%s: a mistake in muster; %s is not described", self._place, name)
            return
        self._succeeded("DescribeTrainingJob")
        if is_news:
            self._tell(name)

    async def _failed(self, operation: str, error: AwsError) -> None:
        self._failures[operation] += 1
        failures = self._failures[operation]
        now = asyncio.get_running_loop().time()
        self._refused[operation] = self._refused.get(operation, RefusedRow()).after(error, now)
        _log.log(logging.WARNING if failures > PATIENCE else logging.INFO, "%s: %s", self._place, error.message)
        if failures > PATIENCE or not error.may_pass:
            entry = self._problems.get(operation)
            self._problems[operation] = error
            if entry is None or entry.message != error.message:
                self._tell_all()
        # It spreads places that failed together.
        await asyncio.sleep(backoff_seconds(failures, error, self._chance()))

    def _succeeded(self, operation: str) -> None:
        self._failures[operation] = 0
        self._refused.pop(operation, None)
        if self._problems.pop(operation, None) is not None:
            self._tell_all()

    def _tell_all(self) -> None:
        for name in tuple(self._watches):
            self._tell(name)

    def _tell(self, name: str) -> None:
        watch = self._watches.get(name)
        if watch is None:
            return
        try:
            watch.on_change()
        except Exception:  # noqa: BLE001 - one who can't be told must not cost the others
            _log.exception("%s: who was told of %s failed", self._place, name)
