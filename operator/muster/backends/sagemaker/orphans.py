"""Stop training jobs whose resource was deleted without muster, because its finalizer was removed."""

from __future__ import annotations

import asyncio
import logging
import random
from dataclasses import dataclass, field

from muster.clients.aws.backoff import compute_backoff
from muster.clients.aws.client import Aws
from muster.objects.aws.access import AwsAccess
from muster.objects.aws.errors import AwsError, NotFound
from muster.render.sagemaker.request.identity import has_job_tags

CREATION_SECONDS = 60.0
"""Retry this long if the training job doesn't exist: the request that creates it may not have finished."""

_log = logging.getLogger(__name__)


@dataclass
class Orphans:
    """The background tasks that stop training jobs. `close` drops unfinished tasks (docs/sagemaker-life.md)."""

    aws: Aws
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def stop(self, job_uid: str, name: str, aws_access: AwsAccess) -> None:
        """Stop a training job in the background, if it belongs to the job."""
        task = asyncio.create_task(self._stop(job_uid, name, aws_access), name=f"orphan {name}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        """Cancel all unfinished tasks."""
        for task in self._tasks:
            task.cancel()

    async def _stop(self, job_uid: str, name: str, aws_access: AwsAccess) -> None:
        clock = asyncio.get_running_loop().time
        started_at, failures = clock(), 0
        while True:
            try:
                await self._stop_if_owned(job_uid, name, aws_access)
            except AwsError as error:
                may_appear = isinstance(error, NotFound) and clock() < started_at + CREATION_SECONDS
                if not may_appear and not error.is_retryable:
                    if not isinstance(error, NotFound):
                        _log.warning(
                            "%s in %s may still run, although its resource was deleted: %s",
                            name,
                            aws_access,
                            error.message,
                        )
                    return
                failures += 1
                # Not for cryptography: the jitter spreads retries.
                await asyncio.sleep(compute_backoff(failures + 1, error, random.random()))  # noqa: S311
            else:
                return

    async def _stop_if_owned(self, job_uid: str, name: str, aws_access: AwsAccess) -> None:
        jobs = self.aws.get_training_jobs(aws_access)
        description = await jobs.describe(name)
        attempt = int(name.rpartition("-")[2])
        if description.has_ended or not has_job_tags(await jobs.list_tags(description.arn), job_uid, attempt):
            return
        await jobs.stop(name)
        _log.warning("%s in %s was stopped, because its resource was deleted", name, aws_access)
