"""Follows the logs of all training jobs that run, and remembers what their ranks said."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from muster.api.timestamps import from_text
from muster.backends.sagemaker.rank_news import LogSource
from muster.clients.aws.job_logs import LATE_SECONDS, LogEvent, Mark
from muster.core.facts import AgentFacts
from muster.core.world import procs_per_node, rank_nodes
from muster.diagnose.sagemaker.rank_log import LogLine, RankGroup, RankLog
from muster.objects.aws.errors import AwsError, NotFound
from muster.objects.aws.place import Place
from muster_worker.contract.log_line import LEAST_PACE_SECONDS, MARK
from muster_worker.contract.schema import RankState

LOOK_SECONDS = 10.0
"""From one look at a job's log to the next, where its account's quota allows that."""

MAX_BACKOFF_SECONDS = 300.0
"""After looks that failed, one after the other."""

SETTLE_SECONDS = 12.0
"""So long after its end a training job's last lines may still be on their way to its log."""

SLICE_LINES = 100
SLICE_SECONDS = 0.05
"""A job may fill its log: between so many lines all other jobs have their turn. A hundred lines take
some milliseconds, and 10,000 ranks that end together are read in ten seconds."""

_log = logging.getLogger(__name__)


class Logs(Protocol):
    """What is asked (`JobLogs`)."""

    async def news(self, job: str, words: str, mark: Mark) -> tuple[list[LogEvent], Mark]:
        """The lines that hold `words`, and from where to look on."""

    async def tails(self, job: str) -> list[LogEvent]:
        """The last lines, all of them."""


@dataclass
class _Followed:
    source: LogSource
    wake: Callable[[], None]
    log: RankLog
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    over_since: float | None = None
    is_complete: bool = False
    task: asyncio.Task[None] | None = None


class LogFollower:
    """The ranks' news (`RankNews`), from CloudWatch Logs. Belongs to one event loop."""

    def __init__(self, logs_of: Callable[[Place], Logs]) -> None:
        self._logs_of = logs_of
        self._followed: dict[str, _Followed] = {}

    @property
    def heartbeat_seconds(self) -> float:
        """Ranks write that often, and a line takes a look's time and its way to be heard."""
        return LEAST_PACE_SECONDS + LOOK_SECONDS + LATE_SECONDS

    def follow(self, source: LogSource, wake: Callable[[], None]) -> None:
        """Read these logs from now on."""
        uid = source.job.metadata.uid
        entry = self._followed.get(uid)
        if entry is not None and entry.source.name == source.name:
            entry.wake = wake
            if source.is_over and entry.over_since is None:
                entry.over_since = _now()
                entry.changed.set()
            entry.source = source
            return
        self.forget(uid)
        followed = _Followed(source, wake, RankLog(rank_group_of(source)))
        followed.over_since = _now() if source.is_over else None
        followed.task = asyncio.create_task(self._read(followed), name=f"logs of {source.name}")
        self._followed[uid] = followed

    def agents(self, job_uid: str, attempt: int) -> tuple[AgentFacts, ...]:
        """The newest of each node that was heard."""
        followed = self._followed.get(job_uid)
        return () if followed is None or followed.source.attempt != attempt else followed.log.agents()

    def is_complete(self, job_uid: str, attempt: int) -> bool:
        """Whether nothing more is to come."""
        followed = self._followed.get(job_uid)
        return followed is not None and followed.source.attempt == attempt and followed.is_complete

    def forget(self, job_uid: str) -> None:
        """The job's resource is gone."""
        followed = self._followed.pop(job_uid, None)
        if followed is not None and followed.task is not None:
            followed.task.cancel()

    async def close(self) -> None:
        """Read no more."""
        tasks = [followed.task for followed in self._followed.values() if followed.task is not None]
        for uid in list(self._followed):
            self.forget(uid)
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _read(self, followed: _Followed) -> None:
        source = followed.source
        logs = self._logs_of(source.place)
        mark, delay = Mark(int(followed.log.rank_group.created_at * 1000)), LOOK_SECONDS
        while not followed.is_complete:
            source, is_last = followed.source, _is_last(followed)
            try:
                if source.has_reports:
                    events, mark = await logs.news(source.name, MARK.strip(), mark)
                    await self._take(followed, events)
                delay = 0.0 if mark.more else LOOK_SECONDS
                if is_last and not mark.more:
                    await self._finish(followed, logs)
            except NotFound:
                # there is no log before the first line, and none any more once it was deleted
                delay = LOOK_SECONDS
                followed.is_complete = is_last
            except AwsError as error:
                delay = min(MAX_BACKOFF_SECONDS, 2 * max(delay, LOOK_SECONDS))
                # a token that has become too old is no good the next time either
                mark = Mark(mark.since)
                # the rest of the job does not wait for what may never be said
                followed.is_complete = is_last
                _log.warning("The logs of %s are not read for %.0f s: %s", source.name, delay, error.message)
            if followed.is_complete:
                followed.wake()
                return
            await self._wait(followed, delay)

    async def _wait(self, followed: _Followed, delay: float) -> None:
        if followed.over_since is not None and delay <= LOOK_SECONDS:
            delay = min(delay, max(0.0, followed.over_since + SETTLE_SECONDS - _now()))
        followed.changed.clear()
        try:
            async with asyncio.timeout(delay):
                await followed.changed.wait()
        except TimeoutError:
            return

    async def _finish(self, followed: _Followed, logs: Logs) -> None:
        """All is read that ranks wrote. Where that doesn't tell how each ended, their launchers may."""
        if followed.source.has_failed and not _is_told(followed.log):
            await self._take(followed, await logs.tails(followed.source.name))
        followed.is_complete = True

    async def _take(self, followed: _Followed, events: list[LogEvent]) -> None:
        for start in range(0, len(events), SLICE_LINES):
            if start:
                await asyncio.sleep(SLICE_SECONDS)
            lines = (LogLine(event.stream, event.at, event.text) for event in events[start : start + SLICE_LINES])
            if followed.log.feed(lines):
                followed.wake()


def _is_last(followed: _Followed) -> bool:
    """Whether what a look finds now is all that there will be."""
    if followed.over_since is None:
        return False
    source = followed.source
    nothing_to_learn = not source.has_reports and not source.has_failed
    return nothing_to_learn or _now() >= followed.over_since + SETTLE_SECONDS


def _now() -> float:
    return asyncio.get_running_loop().time()


def rank_group_of(source: LogSource) -> RankGroup:
    """What is known of the ranks before any line of them."""
    job = source.job
    return RankGroup(
        job_uid=job.metadata.uid,
        attempt=source.attempt,
        nodes=rank_nodes(job),
        procs_per_node=procs_per_node(job),
        created_at=from_text(job.metadata.creation_timestamp) if job.metadata.creation_timestamp else 0.0,
        has_launcher=job.spec.launcher.chosen.has_program,
    )


def _is_told(log: RankLog) -> bool:
    """Whether a rank told of a bad end of its own."""
    ends = (rank.report for agent in log.agents() for rank in agent.ranks if rank.report.state == RankState.EXITED)
    return any(report.exit_code != 0 for report in ends)
