"""One job from start to end on this machine: the loop around `reconcile`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from muster.api.spec.job import Job
from muster.api.status.status import Status
from muster.backends.node_jobs import NodeBackend, NodePlan, PlannedNodes
from muster.core.facts import JobFacts
from muster.engine.reconcile import ReconcileResult, reconcile

_LEADER_TERM = 1
"""A local run has one decider, so one leader term."""

_REST_SECONDS = 0.02
"""The least pause between two turns: reports that come together are looked at together."""


class StoppableBackend(NodeBackend, Protocol):
    """A backend that can be asked to bring its job to an end."""

    def request_stop(self, by: str, grace_seconds: float) -> None:
        """`by` asks the job to end; its ranks get so long from SIGTERM to SIGKILL."""
        ...


class Session(Protocol):
    """An open run: its backend, and the event that is set whenever something of it changed."""

    @property
    def backend(self) -> StoppableBackend: ...

    @property
    def changed(self) -> asyncio.Event: ...


@dataclass
class LocalRun:
    """Runs `job` on `backend`; looks again whenever `changed` is set. Every turn is passed to `publish`.

    `clock` gives Unix seconds.
    """

    job: Job
    backend: NodeBackend
    changed: asyncio.Event
    clock: Callable[[], float]
    publish: Callable[[ReconcileResult[JobFacts]], None]

    async def run(self) -> ReconcileResult[JobFacts]:
        """Go around until the job is over; the last turn."""
        status, backend = Status(), PlannedNodes(self.backend, NodePlan(_LEADER_TERM))
        while True:
            self.changed.clear()
            result = await reconcile(self.job, status, backend, self, self.clock())
            status = result.status
            self.publish(result)
            if result.is_over:
                return result
            await self._wait_for_change(result)

    async def write(self, status: Status) -> None:
        """A local run's status ends with it: `publish` shows it."""

    async def _wait_for_change(self, result: ReconcileResult[JobFacts]) -> None:
        timeout = None if result.requeue_at is None else max(0.0, result.requeue_at - self.clock())
        try:
            async with asyncio.timeout(timeout):
                await self.changed.wait()
        except TimeoutError:
            return
        await asyncio.sleep(_REST_SECONDS)
