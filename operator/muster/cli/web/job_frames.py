"""The frames of a cluster's jobs, from their statuses.

A job is read again only if its version has changed and a page shows it, by at most `MAX_READERS` at a time.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from dataclasses import dataclass, field, replace

from muster.api.status.status import Status
from muster.cli.board.frame import Frame, build_frame
from muster.cli.board.metric_curves import MetricCurves, add_values, read_values
from muster.cli.board.observed_job import ObservedJob, build_view, compute_elapsed_seconds, read_observed_job
from muster.cli.web.job_list import SHOWN_JOBS, ListedJob, describe_missing
from muster.cli.web.source import JobNotFound, NotShown
from muster.clients.kubernetes.client import Client
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.kinds import Object
from muster.objects.kubernetes.object_parser import read_missing_parts

MAX_FRAMES = 64
"""This many jobs keep their last frame, and the curves of their metrics."""

MAX_TOTAL_RANKS = 4_000_000
"""These jobs have no more ranks than this: a rank takes 24 bytes, and users may write any number into a status."""

MAX_READERS = 2
"""This many statuses are converted at a time. One of 100,000 ranks takes 3 to 100 ms of processor time."""

PAUSE_FACTOR = 5.0
"""A job is read again only after this many times the time that the last reading took: a fifth of a core at most."""

RETRY_SECONDS = 2.0
"""The time until a job is read again that the API server could not send."""


@dataclass(frozen=True)
class ShownJob:
    """A job, and its frame of the second `second`."""

    job: ObservedJob
    frame: Frame
    second: int


@dataclass
class _Record:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    version: str = ""
    read_again_at: float = 0.0
    curves: MetricCurves = field(default_factory=MetricCurves)
    shown: ShownJob | None = None

    @property
    def world(self) -> int:
        return 0 if self.shown is None else self.shown.frame.world


@dataclass
class JobFrames:
    """Reads jobs with `client`."""

    client: Client
    _records: OrderedDict[str, _Record] = field(default_factory=OrderedDict)
    _readers: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_READERS))

    async def read(self, listed: ListedJob) -> ShownJob:
        """Return the newest state of a job. Raises `JobNotFound`, and `NotShown` if the API server doesn't answer."""
        record = self._records.setdefault(listed.key, _Record())
        self._records.move_to_end(listed.key)
        self._make_room()
        async with record.lock:
            is_new = record.version != listed.version and time.monotonic() >= record.read_again_at
            shown = record.shown
            if shown is None or is_new:
                shown = await self._load(listed, record)
            record.shown = _advance(shown, time.time())
            return record.shown

    def _make_room(self) -> None:
        """Forget the jobs that no page has asked about for the longest time."""
        ranks = sum(record.world for record in self._records.values())
        while len(self._records) > MAX_FRAMES or (ranks > MAX_TOTAL_RANKS and len(self._records) > 1):
            _, record = self._records.popitem(last=False)
            ranks -= record.world

    async def _load(self, listed: ListedJob, record: _Record) -> ShownJob:
        try:
            resource = await self.client.get(SHOWN_JOBS, listed.namespace, listed.name)
        except ApiError as error:
            if error.is_not_found:
                raise JobNotFound(describe_missing(listed.key)) from None
            problem = f"the cluster doesn't answer: {error.message}"
            if record.shown is None or not error.is_temporary:
                raise NotShown(problem) from None
            record.read_again_at = time.monotonic() + RETRY_SECONDS
            return replace(record.shown, frame=replace(record.shown.frame, notice=problem))
        async with self._readers:
            return await self._show(listed, record, resource)

    async def _show(self, listed: ListedJob, record: _Record, resource: Object) -> ShownJob:
        began_at = time.monotonic()
        job = await asyncio.to_thread(_read_job, resource)
        if record.shown is not None and record.shown.job.uid != job.uid:
            record.curves = MetricCurves()
        now = time.time()
        elapsed = compute_elapsed_seconds(job, now)
        if not job.is_over:
            record.curves = add_values(record.curves, elapsed, read_values(job.status))
        frame = await asyncio.to_thread(build_frame, build_view(job, now), now, record.curves)
        record.version = listed.version
        record.read_again_at = time.monotonic() + PAUSE_FACTOR * (time.monotonic() - began_at)
        return ShownJob(job, frame, int(now))


def _read_job(resource: Object) -> ObservedJob:
    missing = read_missing_parts(resource)
    job = read_observed_job(resource)
    if not missing:
        return job
    reason = "; ".join(f"{path or 'the job'}: {problem}" for path, problem in missing.items())
    return replace(job, status=Status(message=f"its status can't be read ({reason})"))


def _advance(shown: ShownJob, now: float) -> ShownJob:
    """Return the job with the current time, and the same object within a second or after the job's end."""
    if shown.job.is_over or int(now) == shown.second:
        return shown
    elapsed = int(compute_elapsed_seconds(shown.job, now))
    return ShownJob(shown.job, replace(shown.frame, at=int(now), elapsed_seconds=elapsed), int(now))
