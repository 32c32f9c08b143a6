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
from muster.controller.backends import LeaderTerm, admit, apply_defaults
from muster.controller.jobs.change_queue import ChangeQueue
from muster.controller.jobs.job_controller import JobControllerDependencies
from muster.controller.jobs.job_memory import JobMemory
from muster.controller.jobs.jobs import Jobs
from muster.controller.jobs.missed_deletions import MissedDeletionFinder
from muster.controller.jobs.processor_queue import ProcessorQueue
from muster.controller.jobs.shard_filter import ShardFilter
from muster.controller.jobs.waiting_job_loader import WaitingJobLoader
from muster.controller.metrics.recorder import MetricsRecorder
from muster.controller.status.events import EventPoster, StatusPublisher
from muster.controller.status.write_budget import WriteBudget
from muster.controller.status.writer import StatusWriterDependencies
from muster.controller.supervision import supervise
from muster.controller.trust.collector_endpoints import CollectorEndpoints, maintain_endpoints
from muster.controller.watch.resources import ResourceWatch
from muster.core.shard import Shard
from muster.objects.kubernetes.job_source import JobIdentity
from muster.objects.kubernetes.resource import Resource

RECONCILE_GRACE_SECONDS = 2.0
"""When the operator stops, running reconciles have this time to finish."""


class KopfFailure(Exception):
    """kopf has failed too often in succession."""


@dataclass(frozen=True)
class LeaderDependencies:
    """The components that a standby has, too. `clock` returns Unix seconds.

    `make_backends` creates the backends of one term, without any state of earlier terms. `endpoints` has the addresses
    at which agents reach this collector; None if the user routes agents to it. `identity` is the process' name.
    `holds_lease` returns whether this process may act as leader now. `recorder` records the leader's metrics. The
    leader runs the jobs of `shard`.
    """

    client: Client
    namespaces: tuple[str, ...]
    informers: tuple[Informer, ...]
    store: RankStore
    collector: Collector
    endpoints: CollectorEndpoints | None
    make_backends: Callable[[LeaderTerm], Mapping[BackendName, ClusterBackend]]
    identity: str
    holds_lease: Callable[[], bool]
    clock: Callable[[], float]
    config: OperatorConfig
    recorder: MetricsRecorder
    shard: Shard


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

    def get_resources(self) -> tuple[Resource, ...]:
        """Return the newest known version of each job that has a controller."""
        return () if self._jobs is None else self._jobs.get_resources()

    def get_waiting_jobs(self) -> tuple[JobIdentity, ...]:
        """Return the jobs that wait for memory."""
        return self._job_memory.get_waiting_jobs()

    async def run(self) -> None:
        """Run all tasks until cancelled. Raises `KopfFailure`."""
        dependencies = self._dependencies
        # Wait for all pods: otherwise the operator would create existing pods again, or consider them lost.
        for informer in dependencies.informers:
            await informer.synced.wait()
        dependencies.collector.start_leading(dependencies.holds_lease)
        backends, watch_gap = dependencies.make_backends(LeaderTerm(self._leader_term, self.wake)), asyncio.Event()
        events = EventPoster(dependencies.client, dependencies.identity, dependencies.clock, random.random)
        controller_dependencies = self._make_controller_dependencies(backends, events)
        forget_job, shard_filter = partial(_forget_job, backends), ShardFilter(dependencies.shard)
        jobs = self._jobs = Jobs(controller_dependencies, events.post_missed, forget_job, watch_gap.set, shard_filter)
        changes = ChangeQueue(controller_dependencies.processor, jobs.handle_change)
        client, namespaces, job_memory = dependencies.client, dependencies.namespaces, self._job_memory
        missed_deletions = MissedDeletionFinder(
            client, namespaces, lambda: (*jobs.get_resources(), *job_memory.get_loaded_jobs()), jobs.remove, watch_gap
        )
        resources = self._resources = self._make_resource_watch(changes, shard_filter)
        resources.start()
        supervised_tasks = (
            _start_supervised("the search for deleted jobs", missed_deletions.run),
            _start_supervised("the Event poster", events.run),
            _start_supervised("the loading of waiting jobs", WaitingJobLoader(client, job_memory, changes.put).run),
            _start_supervised("the collector's EndpointSlices", self._maintain_endpoints),
        )
        try:
            await resources.has_ended.wait()
            raise KopfFailure("kopf failed too often in succession; see its log messages")
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

    def _make_resource_watch(self, changes: ChangeQueue, shard_filter: ShardFilter) -> ResourceWatch:
        namespaces, is_own = self._dependencies.namespaces, shard_filter.has_job
        return ResourceWatch(namespaces, self._job_memory, changes.put, time.monotonic, random.random, is_own)

    async def _maintain_endpoints(self) -> None:
        dependencies = self._dependencies
        if dependencies.endpoints is not None:
            await maintain_endpoints(dependencies.client, dependencies.endpoints, self._leader_term, random.random)

    def _make_controller_dependencies(
        self, backends: Mapping[BackendName, ClusterBackend], events: EventPoster
    ) -> JobControllerDependencies:
        dependencies = self._dependencies
        return JobControllerDependencies(
            backends=backends,
            store=dependencies.store,
            status_writer=StatusWriterDependencies(
                dependencies.client,
                WriteBudget(),
                dependencies.clock,
                dependencies.recorder.count_writes_of(StatusPublisher(events)),
                dependencies.holds_lease,
                dependencies.client.has_waiting_requests,
                self._job_memory,
                dependencies.shard,
            ),
            apply_defaults=partial(apply_defaults, config=dependencies.config),
            admit=partial(admit, config=dependencies.config),
            clock=dependencies.clock,
            processor=ProcessorQueue(time.thread_time),
            jitter=random.random,
            measure=dependencies.recorder.measure,
        )


def _start_supervised(name: str, run: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
    return asyncio.create_task(supervise(name, run, random.random), name=name)


async def _cancel(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


def _forget_job(backends: Mapping[BackendName, ClusterBackend], job_uid: str) -> None:
    for backend in backends.values():
        backend.forget(job_uid)
