"""Watches of the namespaces whose jobs pages show. A watch ends when no page needs it any more."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from muster.cli.web.job_list import SHOWN_JOBS, JobList
from muster.cli.web.source import NotShown
from muster.clients.kubernetes.client import Client
from muster.clients.kubernetes.informer import Informer

MAX_WATCHES = 64

IDLE_SECONDS = 60.0
"""A watch that no request has needed for this long ends."""

CHECK_SECONDS = 10.0
"""The interval between two looks for such watches."""

LIST_SECONDS = 15.0
"""The timeout for the list of a namespace's jobs."""


@dataclass
class _Watch:
    jobs: JobList
    informer: Informer
    task: asyncio.Task[None]
    used_at: float


@dataclass
class NamespaceWatches:
    """Watches with `client`, of `namespaces` only; empty: of all."""

    client: Client
    namespaces: Sequence[str] = ()
    _watches: dict[str, _Watch] = field(default_factory=dict)
    _timer: asyncio.TimerHandle | None = None

    def serves(self, namespace: str) -> bool:
        """Whether the board shows this namespace ("": all)."""
        return not self.namespaces or namespace in self.namespaces

    async def get_jobs(self, namespace: str) -> JobList:
        """Return the current jobs of a namespace ("": of all). Raises `NotShown` if they can't be listed in time."""
        watch = self._watches.get(namespace) or self._start(namespace)
        watch.used_at = time.monotonic()
        try:
            async with asyncio.timeout(LIST_SECONDS):
                await watch.informer.synced.wait()
        except TimeoutError:
            raise NotShown("the cluster does not send the list of jobs: try again later") from None
        return watch.jobs

    async def close(self) -> None:
        """End all watches."""
        if self._timer is not None:
            self._timer.cancel()
        tasks = [watch.task for watch in self._watches.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _start(self, namespace: str) -> _Watch:
        if len(self._watches) >= MAX_WATCHES:
            raise NotShown(f"the board shows {MAX_WATCHES} namespaces already: try again in a minute")
        jobs = JobList()
        informer = Informer(self.client, SHOWN_JOBS, (namespace,) if namespace else (), jobs.take)
        task = asyncio.create_task(informer.run(), name=f"the watch of jobs in {namespace or 'all namespaces'}")
        self._watches[namespace] = _Watch(jobs, informer, task, time.monotonic())
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(IDLE_SECONDS, self._end_idle)
        return self._watches[namespace]

    def _end_idle(self) -> None:
        for namespace, watch in tuple(self._watches.items()):
            if time.monotonic() - watch.used_at > IDLE_SECONDS:
                watch.task.cancel()
                del self._watches[namespace]
        self._timer = None
        if self._watches:
            self._timer = asyncio.get_running_loop().call_later(CHECK_SECONDS, self._end_idle)
