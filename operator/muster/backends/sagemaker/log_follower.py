"""Follow the logs of all running training jobs, and read the ranks' reports from them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from muster.api.timestamps import parse_timestamp
from muster.backends.sagemaker.rank_reports import LogSource
from muster.clients.aws.job_logs import LATE_SECONDS, LogEvent, LogPosition
from muster.core.facts import AgentFacts
from muster.core.world import count_nodes_with_ranks, get_procs_per_node
from muster.diagnose.sagemaker.rank_log import LogLine, RankGroup, RankLog
from muster.objects.aws.access import AwsAccess
from muster.objects.aws.errors import AwsError, NotFound
from muster_worker.contract.log_line import MARK, MIN_INTERVAL_SECONDS
from muster_worker.contract.schema import RankState

POLL_SECONDS = 10.0
"""The interval between reads of a job's log, if its account's quota permits."""

MAX_BACKOFF_SECONDS = 300.0
"""The maximum delay after several failed reads."""

SETTLE_SECONDS = 12.0
"""A training job's last lines may arrive in its log this long after its end."""

SLICE_LINES = 100
SLICE_SECONDS = 0.05
"""Other jobs' logs are read between two slices. A slice takes some milliseconds, and the lines of 10,000 ranks that end
together take ten seconds."""

_log = logging.getLogger(__name__)


class Logs(Protocol):
    """Requests the lines of a training job's log (`JobLogs`)."""

    async def read_new_lines(self, job: str, words: str, position: LogPosition) -> tuple[list[LogEvent], LogPosition]:
        """Return the lines after `position` that contain `words`, and the position for the next read."""

    async def read_last_lines(self, job: str) -> list[LogEvent]:
        """Return the last lines of each stream."""


@dataclass
class _FollowedLog:
    source: LogSource
    wake: Callable[[], None]
    log: RankLog
    change_event: asyncio.Event = field(default_factory=asyncio.Event)
    over_since: float | None = None
    is_complete: bool = False
    task: asyncio.Task[None] | None = None


class LogFollower:
    """Reads the ranks' reports (`RankReports`) from CloudWatch Logs. Belongs to one event loop."""

    def __init__(self, get_logs: Callable[[AwsAccess], Logs]) -> None:
        self._get_logs = get_logs
        self._followed: dict[str, _FollowedLog] = {}

    @property
    def heartbeat_seconds(self) -> float:
        """The interval of the ranks' reports, plus the time until a line is read."""
        return MIN_INTERVAL_SECONDS + POLL_SECONDS + LATE_SECONDS

    def follow(self, source: LogSource, wake: Callable[[], None]) -> None:
        """Start to read these logs."""
        uid = source.job.metadata.uid
        entry = self._followed.get(uid)
        if entry is not None and entry.source.name == source.name:
            entry.wake = wake
            if source.is_over and entry.over_since is None:
                entry.over_since = _get_now()
                entry.change_event.set()
            entry.source = source
            return
        self.forget(uid)
        followed_log = _FollowedLog(source, wake, RankLog(_make_rank_group(source)))
        followed_log.over_since = _get_now() if source.is_over else None
        followed_log.task = asyncio.create_task(self._read(followed_log), name=f"logs of {source.name}")
        self._followed[uid] = followed_log

    def get_agents(self, job_uid: str, attempt: int) -> tuple[AgentFacts, ...]:
        """Return the newest report of each node."""
        followed_log = self._followed.get(job_uid)
        return () if followed_log is None or followed_log.source.attempt != attempt else followed_log.log.list_agents()

    def is_complete(self, job_uid: str, attempt: int) -> bool:
        """Whether all lines have been read."""
        followed_log = self._followed.get(job_uid)
        return followed_log is not None and followed_log.source.attempt == attempt and followed_log.is_complete

    def forget(self, job_uid: str) -> None:
        """Stop reading the logs of a deleted job."""
        followed_log = self._followed.pop(job_uid, None)
        if followed_log is not None and followed_log.task is not None:
            followed_log.task.cancel()

    async def close(self) -> None:
        """Stop reading all logs."""
        tasks = [followed_log.task for followed_log in self._followed.values() if followed_log.task is not None]
        for uid in list(self._followed):
            self.forget(uid)
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _read(self, followed_log: _FollowedLog) -> None:
        source = followed_log.source
        logs = self._get_logs(source.aws_access)
        position, delay = LogPosition(int(followed_log.log.rank_group.created_at * 1000)), POLL_SECONDS
        while not followed_log.is_complete:
            source, is_last = followed_log.source, _is_last(followed_log)
            try:
                if source.has_reports:
                    events, position = await logs.read_new_lines(source.name, MARK.strip(), position)
                    await self._take(followed_log, events)
                delay = 0.0 if position.next_token else POLL_SECONDS
                if is_last and not position.next_token:
                    await self._finish(followed_log, logs)
            except NotFound:
                # the log doesn't exist yet, or it was deleted
                delay = POLL_SECONDS
                followed_log.is_complete = is_last
            except AwsError as error:
                delay = min(MAX_BACKOFF_SECONDS, 2 * max(delay, POLL_SECONDS))
                # drop the page token: an expired token would fail again
                position = LogPosition(position.since)
                # don't delay the job's end: the retries may fail, too
                followed_log.is_complete = is_last
                _log.warning("The logs of %s could not be read; retry in %.0f s: %s", source.name, delay, error.message)
            if followed_log.is_complete:
                followed_log.wake()
                return
            await self._wait(followed_log, delay)

    async def _wait(self, followed_log: _FollowedLog, delay: float) -> None:
        if followed_log.over_since is not None and delay <= POLL_SECONDS:
            delay = min(delay, max(0.0, followed_log.over_since + SETTLE_SECONDS - _get_now()))
        followed_log.change_event.clear()
        try:
            async with asyncio.timeout(delay):
                await followed_log.change_event.wait()
        except TimeoutError:
            return

    async def _finish(self, followed_log: _FollowedLog, logs: Logs) -> None:
        """Read the launchers' last lines, if the training job failed but no rank reported a failure."""
        if followed_log.source.has_failed and not _has_failed_rank(followed_log.log):
            await self._take(followed_log, await logs.read_last_lines(followed_log.source.name))
        followed_log.is_complete = True

    async def _take(self, followed_log: _FollowedLog, events: list[LogEvent]) -> None:
        for start in range(0, len(events), SLICE_LINES):
            if start:
                await asyncio.sleep(SLICE_SECONDS)
            lines = (LogLine(event.stream, event.at, event.text) for event in events[start : start + SLICE_LINES])
            if followed_log.log.feed(lines):
                followed_log.wake()


def _is_last(followed_log: _FollowedLog) -> bool:
    """Whether the next read is the final one."""
    if followed_log.over_since is None:
        return False
    source = followed_log.source
    needs_no_lines = not source.has_reports and not source.has_failed
    return needs_no_lines or _get_now() >= followed_log.over_since + SETTLE_SECONDS


def _get_now() -> float:
    return asyncio.get_running_loop().time()


def _make_rank_group(source: LogSource) -> RankGroup:
    """Return a new rank group for the reader."""
    job = source.job
    return RankGroup(
        job_uid=job.metadata.uid,
        attempt=source.attempt,
        nodes=count_nodes_with_ranks(job),
        procs_per_node=get_procs_per_node(job),
        created_at=parse_timestamp(job.metadata.creation_timestamp) if job.metadata.creation_timestamp else 0.0,
        has_launcher=job.spec.launcher.chosen_launcher.has_launcher_program,
    )


def _has_failed_rank(log: RankLog) -> bool:
    """Whether a rank reported its own failure."""
    ends = (rank.report for agent in log.list_agents() for rank in agent.ranks if rank.report.state == RankState.EXITED)
    return any(report.exit_code != 0 for report in ends)
