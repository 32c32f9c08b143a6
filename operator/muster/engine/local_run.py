"""Run one job on this machine from start to end, with `reconcile` in a loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from muster.api.spec.job import Job
from muster.api.status.status import Status
from muster.backends.node_jobs import NodeBackend, NodeDecisions, NodeJobBackend
from muster.core.facts import JobFacts
from muster.engine.reconcile import ReconcileResult, reconcile

_LEADER_TERM = 1
"""A local run has a single leader."""

_MIN_INTERVAL_SECONDS = 0.02
"""The minimum time between two reconciliations, so that one of them handles all reports that arrive together."""


class StoppableBackend(NodeBackend, Protocol):
    """A backend that can stop its job."""

    def request_stop(self, by: str, grace_seconds: float) -> None:
        """Request a stop; the ranks get `grace_seconds` between SIGTERM and SIGKILL. `by` names the requester."""
        ...


class Session(Protocol):
    """An open run: its backend, and an event for changes."""

    @property
    def backend(self) -> StoppableBackend: ...

    @property
    def change_event(self) -> asyncio.Event: ...


@dataclass
class LocalRun:
    """Runs `job` on `backend`, and reconciles it whenever `change_event` is set. `publish` receives every result.

    `clock` returns Unix seconds.
    """

    job: Job
    backend: NodeBackend
    change_event: asyncio.Event
    clock: Callable[[], float]
    publish: Callable[[ReconcileResult[JobFacts]], None]

    async def run(self) -> ReconcileResult[JobFacts]:
        """Reconcile until the job is over; return the last result."""
        status, backend = Status(), NodeJobBackend(self.backend, NodeDecisions(_LEADER_TERM))
        while True:
            self.change_event.clear()
            result = await reconcile(self.job, status, backend, self, self.clock())
            status = result.status
            self.publish(result)
            if result.is_over:
                return result
            await self._wait_for_change(result)

    async def write(self, status: Status) -> None:
        """Do nothing: `publish` has shown the status, and nothing reads it after the run."""

    async def write_now(self, status: Status) -> None:
        """Do nothing, as `write`."""

    async def _wait_for_change(self, result: ReconcileResult[JobFacts]) -> None:
        timeout = None if result.requeue_at is None else max(0.0, result.requeue_at - self.clock())
        try:
            async with asyncio.timeout(timeout):
                await self.change_event.wait()
        except TimeoutError:
            return
        await asyncio.sleep(_MIN_INTERVAL_SECONDS)
