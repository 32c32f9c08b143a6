"""Load the jobs that did not fit into the operator's memory limit, as soon as they fit."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from muster.clients.kubernetes.client import Change, Client
from muster.controller.jobs.job_memory import JobMemory
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.job_source import WATCHED_JOBS, JobIdentity, read_identity

CHECK_SECONDS = 2.0
"""The interval between two checks for free memory."""

MAX_JOBS_PER_CHECK = 20
"""The maximum number of jobs that one check loads."""

_log = logging.getLogger(__name__)


@dataclass
class WaitingJobLoader:
    """Loads jobs that wait for the operator's memory, and passes them to `handle_change`."""

    client: Client
    job_memory: JobMemory
    handle_change: Callable[[Change], None]

    async def run(self) -> None:
        """Check for free memory, until cancelled."""
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            for identity in self.job_memory.find_jobs_that_fit(MAX_JOBS_PER_CHECK):
                try:
                    await self._load(identity)
                except ApiError as error:
                    _log.warning(
                        "%s/%s waits for memory of the operator and could not be read again: %s",
                        identity.namespace,
                        identity.name,
                        error,
                    )
                    break

    async def _load(self, identity: JobIdentity) -> None:
        try:
            source = await self.client.get(WATCHED_JOBS, identity.namespace, identity.name)
        except ApiError as error:
            if not error.is_not_found:
                raise
            self.job_memory.forget(identity.uid)
            return
        if read_identity(source).uid != identity.uid:
            self.job_memory.forget(identity.uid)
        self.handle_change(Change("MODIFIED", self.job_memory.reserve(source)))
