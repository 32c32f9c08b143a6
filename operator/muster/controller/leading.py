"""What only the replica that leads does: it hears of jobs, decides, and lets agents report."""

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
from muster.controller.jobs.inbox import Inbox
from muster.controller.jobs.job_controller import JobControllerDependencies
from muster.controller.jobs.job_room import JobRoom
from muster.controller.jobs.jobs import Jobs
from muster.controller.jobs.processor_queue import ProcessorQueue
from muster.controller.jobs.readmission import Readmission
from muster.controller.jobs.sweep import Sweep
from muster.controller.status.events import EventPoster
from muster.controller.status.publisher import StatusPublisher
from muster.controller.status.write_budget import WriteBudget
from muster.controller.status.writer import StatusWriterDependencies
from muster.controller.supervision import supervised
from muster.controller.trust.collector_endpoints import CollectorEndpoints, keep_endpoints
from muster.controller.watch.resources import ResourceWatch

TURN_SECONDS = 2.0
"""How long a turn that is under way may go on once the operator is asked to stop."""


class KopfEnded(Exception):
    """kopf can't be kept going."""


@dataclass(frozen=True)
class LeaderDependencies:
    """What lives as long as the process, whether it leads or not. `clock` gives Unix seconds.

    `backends` makes those of a term, which know nothing of earlier ones. `endpoints` is where agents find this
    collector, None when the user routes agents to it.
    `identity` is the process' name, `holds_lease` says whether it may act as leader at this moment.
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


class Leading:
    """One time as leader, numbered `leader_term`. It is cancelled when the Lease is lost or the process ends."""

    def __init__(self, dependencies: LeaderDependencies, leader_term: int) -> None:
        self._dependencies = dependencies
        self._leader_term = leader_term
        self._jobs: Jobs | None = None
        self._resources: ResourceWatch | None = None

    @property
    def works(self) -> bool:
        """Whether what happens to resources is heard of, or nothing is to be heard yet."""
        return self._resources is None or self._resources.is_alive

    def wake(self, job_uid: str) -> None:
        """Something of the job changed that its resource doesn't tell: its pods, its training job."""
        if self._jobs is not None:
            self._jobs.wake(job_uid)

    async def run(self) -> None:
        """Lead. Raises `KopfEnded`."""
        dependencies = self._dependencies
        # A pod that is not known yet would be made a second time, or taken for lost.
        for informer in dependencies.informers:
            await informer.synced.wait()
        dependencies.collector.lead(dependencies.holds_lease)
        backends, gap = dependencies.backends(Term(self._leader_term, self.wake)), asyncio.Event()
        events = EventPoster(dependencies.client, dependencies.identity, dependencies.clock, random.random)

        room = JobRoom()
        controller_dependencies = self._controller_dependencies(backends, events, room)
        jobs = self._jobs = Jobs(controller_dependencies, events.catch_up, partial(_forget, backends), gap.set)
        inbox = Inbox(controller_dependencies.processor, jobs.take)
        client, namespaces = dependencies.client, dependencies.namespaces
        sweep = Sweep(client, namespaces, lambda: (*jobs.resources(), *room.held()), jobs.drop, gap)
        resources = self._resources = ResourceWatch(namespaces, room, inbox.put, time.monotonic, random.random)
        resources.start()
        beside = (
            _supervised("the look for jobs that vanished", sweep.run),
            _supervised("the sending of Events", events.run),
            _supervised("the look for jobs that wait for room", Readmission(client, room, inbox.put).run),
            _supervised("the way of agents here", self._lead_agents_here),
        )
        try:
            await resources.ended.wait()
            raise KopfEnded("kopf ended too often in a row; its messages say why")
        finally:
            resources.stop()
            # The watch has ended on purpose.
            self._resources = None
            inbox.close()
            await jobs.stop(TURN_SECONDS)
            # The next leader reports what this one did not.
            await _cancel(beside)
            for backend in backends.values():
                backend.close()
            dependencies.collector.step_down(None)
            # The next leader starts without this one's reports and commands.
            dependencies.store.clear()

    async def _lead_agents_here(self) -> None:
        dependencies = self._dependencies
        if dependencies.endpoints is not None:
            await keep_endpoints(dependencies.client, dependencies.endpoints, self._leader_term, random.random)

    def _controller_dependencies(
        self, backends: Mapping[BackendName, ClusterBackend], events: EventPoster, room: JobRoom
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


def _supervised(what: str, run: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
    return asyncio.create_task(supervised(what, run, random.random), name=what)


async def _cancel(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


def _forget(backends: Mapping[BackendName, ClusterBackend], job_uid: str) -> None:
    for backend in backends.values():
        backend.forget(job_uid)
