"""Training jobs whose resource went without muster, because its finalizer was removed: they are stopped."""

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

ARRIVES_SECONDS = 60.0
"""How long one that isn't there is looked for: the request that makes it may have been under way."""

_log = logging.getLogger(__name__)


@dataclass
class Orphans:
    """Belongs to one event loop. What isn't done when it is closed is never done (docs/sagemaker-life.md)."""

    aws: Aws
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def stop(self, job_uid: str, name: str, place: Place) -> None:
        """See to it that a training job ends, if it is the job's; that goes on by itself."""
        task = asyncio.create_task(self._stop(job_uid, name, place), name=f"orphan {name}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        """Try no more."""
        for task in self._tasks:
            task.cancel()

    async def _stop(self, job_uid: str, name: str, place: Place) -> None:
        clock = asyncio.get_running_loop().time
        began, failures = clock(), 0
        while True:
            try:
                await self._stop_if_own(job_uid, name, place)
            except AwsError as error:
                arrives = isinstance(error, NotFound) and clock() < began + ARRIVES_SECONDS
                if not arrives and not error.may_pass:
                    if not isinstance(error, NotFound):
                        _log.warning("%s may run on in %s, and its resource is gone: %s", name, place, error.message)
                    return
                failures += 1
                # No cryptography: it spreads those that failed together.
                await asyncio.sleep(backoff_seconds(failures + 1, error, random.random()))  # noqa: S311
            else:
                return

    async def _stop_if_own(self, job_uid: str, name: str, place: Place) -> None:
        jobs = self.aws.training_jobs(place)
        description = await jobs.describe(name)
        attempt = int(name.rpartition("-")[2])
        if description.has_ended or not is_of(await jobs.tags(description.arn), job_uid, attempt):
            return
        await jobs.stop(name)
        _log.warning("%s in %s is stopped: its resource went without muster", name, place)
