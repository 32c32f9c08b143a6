"""Load waiting jobs when there is memory for them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from muster.clients.kubernetes.client import Change, Client
from muster.controller.jobs.job_memory import JobMemory
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.job_source import WATCHED_JOBS, JobIdentity, identity_of

CHECK_SECONDS = 2.0
"""The interval between two checks for free memory."""

MAX_JOBS_PER_CHECK = 20
"""The maximum number of jobs that one check loads."""

_log = logging.getLogger(__name__)


@dataclass
class Readmission:
    """Passes the loaded jobs to `take`, like any other change."""

    client: Client
    room: JobMemory
    take: Callable[[Change], None]

    async def run(self) -> None:
        """Check for free memory, until cancelled."""
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            for identity in self.room.waiting_jobs_that_fit(MAX_JOBS_PER_CHECK):
                try:
                    await self._load(identity)
                except ApiError as error:
                    _log.warning(
                        "%s/%s waits for room and could not be loaded: %s", identity.namespace, identity.name, error
                    )
                    break

    async def _load(self, identity: JobIdentity) -> None:
        try:
            source = await self.client.get(WATCHED_JOBS, identity.namespace, identity.name)
        except ApiError as error:
            if not error.is_not_found:
                raise
            self.room.forget(identity.uid)
            return
        if identity_of(source).uid != identity.uid:
            self.room.forget(identity.uid)
        self.take(Change("MODIFIED", self.room.place(source)))
