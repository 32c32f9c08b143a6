"""The tasks that only the leader runs: it watches jobs, reconciles them, and accepts agents' reports."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from muster.api.backends import BackendName
from muster.api.config.operator import OperatorConfig
from muster.backends.base import ClusterBackend
from muster.clients.kubernetes.client import Client
from muster.clients.kubernetes.informer import Informer
from muster.collector.collector import Collector
from muster.collector.store import RankStore
from muster.controller.backends import Term, admit, apply_defaults
from muster.controller.jobs.change_queue import ChangeQueue
from muster.controller.jobs.job_controller import JobControllerDependencies
from muster.controller.jobs.job_memory import JobMemory
from muster.controller.jobs.jobs import Jobs
from muster.controller.jobs.missed_deletions import MissedDeletions
from muster.controller.jobs.processor_queue import ProcessorQueue
from muster.controller.jobs.readmission import Readmission
from muster.controller.status.events import EventPoster, StatusPublisher
from muster.controller.status.write_budget import WriteBudget
from muster.controller.status.writer import StatusWriterDependencies
from muster.controller.supervision import supervise
from muster.controller.trust.collector_endpoints import CollectorEndpoints, maintain_endpoints
from muster.controller.watch.resources import ResourceWatch

RECONCILE_GRACE_SECONDS = 2.0
"""How long the current reconciles may continue after the operator is asked to stop."""


class KopfEnded(Exception):
    """kopf has ended too often in a row."""


@dataclass(frozen=True)
class LeaderDependencies:
    """What exists for the whole process, whether it leads or not. `clock` returns Unix seconds.

    `backends` creates the backends of one term, without any state of earlier terms. `endpoints` is where agents reach
    this collector; None if the user routes agents to it. `identity` is the process' name. `holds_lease` returns whether
    this process may act as leader now.
    """

    client: Client
    namespaces: tuple[str, ...]
    informers: tuple[Informer, ...]
    store: RankStore
    collector: Collector
    endpoints: CollectorEndpoints | None
    backends: Callable[[Term], Mapping[BackendName, ClusterBackend]]
    identity: str
    holds_lease: Callable[[], bool]
    clock: Callable[[], float]
    config: OperatorConfig


class LeaderTasks:
    """One term as leader. It is cancelled when the Lease is lost or the process ends."""

    def __init__(self, dependencies: LeaderDependencies, leader_term: int) -> None:
        self._dependencies = dependencies
        self._leader_term = leader_term
        self._jobs: Jobs | None = None
        self._resources: ResourceWatch | None = None

    @property
    def is_healthy(self) -> bool:
        """Whether the watch of resources runs, or has not started yet."""
        return self._resources is None or self._resources.is_alive

    def wake(self, job_uid: str) -> None:
        """Reconcile the job soon, because its pods or its training job changed."""
        if self._jobs is not None:
            self._jobs.wake(job_uid)

    async def run(self) -> None:
        """Lead. Raises `KopfEnded`."""
        dependencies = self._dependencies
        # Without all pods, the operator would create an existing pod again, or consider it lost.
        for informer in dependencies.informers:
            await informer.synced.wait()
        dependencies.collector.lead(dependencies.holds_lease)
        backends, gap = dependencies.backends(Term(self._leader_term, self.wake)), asyncio.Event()
        events = EventPoster(dependencies.client, dependencies.identity, dependencies.clock, random.random)

        room = JobMemory()
        controller_dependencies = self._controller_dependencies(backends, events, room)
        jobs = self._jobs = Jobs(controller_dependencies, events.post_missed, partial(_forget, backends), gap.set)
        inbox = ChangeQueue(controller_dependencies.processor, jobs.take)
        client, namespaces = dependencies.client, dependencies.namespaces
        sweep = MissedDeletions(client, namespaces, lambda: (*jobs.resources(), *room.loaded_jobs()), jobs.remove, gap)
        resources = self._resources = ResourceWatch(namespaces, room, inbox.put, time.monotonic, random.random)
        resources.start()
        supervised_tasks = (
            _supervised("the search for deleted jobs", sweep.run),
            _supervised("the Event poster", events.run),
            _supervised("the loading of waiting jobs", Readmission(client, room, inbox.put).run),
            _supervised("the collector's EndpointSlices", self._maintain_endpoints),
        )
        try:
            await resources.ended.wait()
            raise KopfEnded("kopf ended too often in a row; see its log messages")
        finally:
            resources.stop()
            # Report no failure: the watch was stopped on purpose.
            self._resources = None
            inbox.close()
            await jobs.stop(RECONCILE_GRACE_SECONDS)
            # Cancel last: the next leader posts the Events that remain.
            await _cancel(supervised_tasks)
            for backend in backends.values():
                backend.close()
            dependencies.collector.step_down(None)
            # Keep nothing for a later term of this process: agents report again.
            dependencies.store.clear()

    async def _maintain_endpoints(self) -> None:
        dependencies = self._dependencies
        if dependencies.endpoints is not None:
            await maintain_endpoints(dependencies.client, dependencies.endpoints, self._leader_term, random.random)

    def _controller_dependencies(
        self, backends: Mapping[BackendName, ClusterBackend], events: EventPoster, room: JobMemory
    ) -> JobControllerDependencies:
        dependencies = self._dependencies
        return JobControllerDependencies(
            backends=backends,
            store=dependencies.store,
            writing=StatusWriterDependencies(
                dependencies.client,
                WriteBudget(),
                dependencies.clock,
                StatusPublisher(events),
                dependencies.holds_lease,
                room,
            ),
            apply_defaults=partial(apply_defaults, config=dependencies.config),
            admit=partial(admit, config=dependencies.config),
            clock=dependencies.clock,
            processor=ProcessorQueue(time.thread_time),
            chance=random.random,
        )


def _supervised(name: str, run: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
    return asyncio.create_task(supervise(name, run, random.random), name=name)


async def _cancel(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


def _forget(backends: Mapping[BackendName, ClusterBackend], job_uid: str) -> None:
    for backend in backends.values():
        backend.forget(job_uid)
