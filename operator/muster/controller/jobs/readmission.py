"""Brings back jobs that found no room, when there is some."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from muster.clients.kubernetes.client import Change, Client
from muster.controller.jobs.job_room import JobRoom
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.job_source import WATCHED_JOBS, JobIdentity, identity_of

LOOK_SECONDS = 2.0
"""Between two looks whether there is room."""

AT_ONCE = 20
"""Jobs that are brought back at one look."""

_log = logging.getLogger(__name__)


@dataclass
class Readmission:
    """`take` hears of the jobs as of any other change."""

    client: Client
    room: JobRoom
    take: Callable[[Change], None]

    async def run(self) -> None:
        """Look now and then, for ever."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            for identity in self.room.that_fit(AT_ONCE):
                try:
                    await self._bring_back(identity)
                except ApiError as error:
                    _log.warning(
                        "%s/%s waits for room and could not be read: %s", identity.namespace, identity.name, error
                    )
                    break

    async def _bring_back(self, identity: JobIdentity) -> None:
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
