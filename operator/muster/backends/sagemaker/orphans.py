"""Stop training jobs whose resource was deleted without muster, because its finalizer was removed."""

from __future__ import annotations

import asyncio
import logging
import random
from dataclasses import dataclass, field

from muster.clients.aws.backoff import backoff_seconds
from muster.clients.aws.client import Aws
from muster.objects.aws.errors import AwsError, NotFound
from muster.objects.aws.place import Place
from muster.render.sagemaker.request.identity import is_of

CREATION_SECONDS = 60.0
"""How long a missing training job is expected: the request that creates it may not have finished."""

_log = logging.getLogger(__name__)


@dataclass
class Orphans:
    """Belongs to one event loop. When it is closed, unfinished stops are dropped (docs/sagemaker-life.md)."""

    aws: Aws
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def stop(self, job_uid: str, name: str, place: Place) -> None:
        """Stop a training job in the background, if it belongs to the job."""
        task = asyncio.create_task(self._stop(job_uid, name, place), name=f"orphan {name}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        """Cancel all unfinished stops."""
        for task in self._tasks:
            task.cancel()

    async def _stop(self, job_uid: str, name: str, place: Place) -> None:
        clock = asyncio.get_running_loop().time
        began, failures = clock(), 0
        while True:
            try:
                await self._stop_if_owned(job_uid, name, place)
            except AwsError as error:
                arrives = isinstance(error, NotFound) and clock() < began + CREATION_SECONDS
                if not arrives and not error.may_pass:
                    if not isinstance(error, NotFound):
                        _log.warning(
                            "%s in %s may still run, although its resource was deleted: %s", name, place, error.message
                        )
                    return
                failures += 1
                # Not for cryptography: the jitter spreads retries.
                await asyncio.sleep(backoff_seconds(failures + 1, error, random.random()))  # noqa: S311
            else:
                return

    async def _stop_if_owned(self, job_uid: str, name: str, place: Place) -> None:
        jobs = self.aws.training_jobs(place)
        description = await jobs.describe(name)
        attempt = int(name.rpartition("-")[2])
        if description.has_ended or not is_of(await jobs.tags(description.arn), job_uid, attempt):
            return
        await jobs.stop(name)
        _log.warning("%s in %s was stopped, because its resource was deleted", name, place)
