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
from muster.controller.metrics.recorder import Recorder
from muster.controller.status.events import EventPoster, StatusPublisher
from muster.controller.status.write_budget import WriteBudget
from muster.controller.status.writer import StatusWriterDependencies
from muster.controller.supervision import supervise
from muster.controller.trust.collector_endpoints import CollectorEndpoints, maintain_endpoints
from muster.controller.watch.resources import ResourceWatch
from muster.objects.kubernetes.job_source import JobIdentity
from muster.objects.kubernetes.resource import Resource

RECONCILE_GRACE_SECONDS = 2.0
"""The time that current reconciles have to finish when the operator stops."""


class KopfEnded(Exception):
    """kopf has failed too often in a row."""


@dataclass(frozen=True)
class LeaderDependencies:
    """The components that exist also while this process isn't the leader. `clock` returns Unix seconds.

    `backends` creates the backends of one term, without any state of earlier terms. `endpoints` are the addresses for
    agents of this collector; None if the user routes agents to it. `identity` is the process' name. `holds_lease`
    returns whether this process may act as leader now. `recorder` counts, for metrics, what the leader does.
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
    recorder: Recorder


class LeaderTasks:
    """One term as leader. It is cancelled when the Lease is lost or the process ends."""

    def __init__(self, dependencies: LeaderDependencies, leader_term: int) -> None:
        self._dependencies = dependencies
        self._leader_term = leader_term
        self._jobs: Jobs | None = None
        self._job_memory = JobMemory()
        self._resources: ResourceWatch | None = None

    @property
    def is_healthy(self) -> bool:
        """Whether the watch of resources runs, or has not started yet."""
        return self._resources is None or self._resources.is_alive

    def wake(self, job_uid: str) -> None:
        """Reconcile the job soon, because its pods or its training job changed."""
        if self._jobs is not None:
            self._jobs.wake(job_uid)

    def resources(self) -> tuple[Resource, ...]:
        """Return the newest known version of each job that has a controller."""
        return () if self._jobs is None else self._jobs.resources()

    def waiting_jobs(self) -> tuple[JobIdentity, ...]:
        """Return the jobs that wait for memory."""
        return self._job_memory.waiting_jobs()

    async def run(self) -> None:
        """Run all tasks until cancelled. Raises `KopfEnded`."""
        dependencies = self._dependencies
        # Wait for all pods: otherwise the operator would create existing pods again, or consider them lost.
        for informer in dependencies.informers:
            await informer.synced.wait()
        dependencies.collector.lead(dependencies.holds_lease)
        backends, gap = dependencies.backends(Term(self._leader_term, self.wake)), asyncio.Event()
        events = EventPoster(dependencies.client, dependencies.identity, dependencies.clock, random.random)
        job_memory = self._job_memory
        controller_dependencies = self._controller_dependencies(backends, events)
        jobs = self._jobs = Jobs(controller_dependencies, events.post_missed, partial(_forget, backends), gap.set)
        changes = ChangeQueue(controller_dependencies.processor, jobs.handle_change)
        client, namespaces = dependencies.client, dependencies.namespaces
        missed_deletions = MissedDeletions(
            client, namespaces, lambda: (*jobs.resources(), *job_memory.loaded_jobs()), jobs.remove, gap
        )
        resources = self._resources = ResourceWatch(namespaces, job_memory, changes.put, time.monotonic, random.random)
        resources.start()
        supervised_tasks = (
            _supervised("the search for deleted jobs", missed_deletions.run),
            _supervised("the Event poster", events.run),
            _supervised("the loading of waiting jobs", Readmission(client, job_memory, changes.put).run),
            _supervised("the collector's EndpointSlices", self._maintain_endpoints),
        )
        try:
            await resources.ended.wait()
            raise KopfEnded("kopf ended too often in a row; see its log messages")
        finally:
            resources.stop()
            self._resources = None  # stopped on purpose: report no failure
            changes.close()
            await jobs.stop(RECONCILE_GRACE_SECONDS)
            # Cancel the Event poster last. The next leader posts the remaining Events.
            await _cancel(supervised_tasks)
            for backend in backends.values():
                backend.close()
            dependencies.collector.step_down(None)
            # Agents report again in a later term.
            dependencies.store.clear()

    async def _maintain_endpoints(self) -> None:
        dependencies = self._dependencies
        if dependencies.endpoints is not None:
            await maintain_endpoints(dependencies.client, dependencies.endpoints, self._leader_term, random.random)

    def _controller_dependencies(
        self, backends: Mapping[BackendName, ClusterBackend], events: EventPoster
    ) -> JobControllerDependencies:
        dependencies = self._dependencies
        return JobControllerDependencies(
            backends=backends,
            store=dependencies.store,
            writing=StatusWriterDependencies(
                dependencies.client,
                WriteBudget(),
                dependencies.clock,
                dependencies.recorder.counting(StatusPublisher(events)),
                dependencies.holds_lease,
                self._job_memory,
            ),
            apply_defaults=partial(apply_defaults, config=dependencies.config),
            admit=partial(admit, config=dependencies.config),
            clock=dependencies.clock,
            processor=ProcessorQueue(time.thread_time),
            jitter=random.random,
            measure=dependencies.recorder.measure,
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
