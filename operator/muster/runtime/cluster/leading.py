"""What only the replica that leads does: it hears of jobs, decides, and lets agents report."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

from muster.api import tenancy
from muster.api.node_pool import NamedPool
from muster.api.tenancy_spec import Tenant
from muster.backends.kubernetes.as_it_runs import as_it_runs
from muster.backends.kubernetes.backend import KubernetesBackend
from muster.kube.client import Client
from muster.kube.informer import Informer
from muster.ranks.collector import Collector
from muster.ranks.store import RankStore
from muster.runtime.cluster.actor import Tools
from muster.runtime.cluster.collector_endpoints import CollectorEndpoints, keep_endpoints
from muster.runtime.cluster.events import EventPoster
from muster.runtime.cluster.inbox import Inbox
from muster.runtime.cluster.job_room import JobRoom
from muster.runtime.cluster.jobs import Jobs
from muster.runtime.cluster.journal import Desk
from muster.runtime.cluster.processor_queue import ProcessorQueue
from muster.runtime.cluster.readmission import Readmission
from muster.runtime.cluster.resources import ResourceWatch
from muster.runtime.cluster.supervision import supervised
from muster.runtime.cluster.sweep import Sweep
from muster.runtime.cluster.told import Told
from muster.runtime.cluster.training_life import TrainingLife
from muster.runtime.cluster.write_budget import WriteBudget

TURN_SECONDS = 2.0
"""How long a turn that is under way may go on once the operator is asked to stop."""


class KopfEnded(Exception):
    """kopf can't be kept going."""


@dataclass(frozen=True)
class Parts:
    """What lives as long as the process, whether it leads or not. `clock` gives Unix seconds.

    `backend` makes a term's backend, which knows nothing of earlier terms, `training` that of SageMaker jobs: it is
    given what to call with a job's uid when something of it changed. `default_region` is AWS', "" for none. `endpoints`
    is where agents find this collector, None when the user routes agents to it.
    `identity` is the process' name, `holds_lease` says whether it may act as leader at this moment.
    """

    client: Client
    namespaces: tuple[str, ...]
    informers: tuple[Informer, ...]
    store: RankStore
    collector: Collector
    endpoints: CollectorEndpoints | None
    backend: Callable[[], KubernetesBackend]
    training: Callable[[Callable[[str], None]], TrainingLife]
    identity: str
    holds_lease: Callable[[], bool]
    clock: Callable[[], float]
    node_pools: tuple[NamedPool, ...]
    tenancy: tuple[Tenant, ...]
    default_region: str


class Leading:
    """One time as leader, numbered `term`. It ends by being cancelled: the Lease is another's, or the process ends."""

    def __init__(self, parts: Parts, term: int) -> None:
        self._parts = parts
        self._term = term
        self._jobs: Jobs | None = None
        self._resources: ResourceWatch | None = None

    @property
    def works(self) -> bool:
        """Whether what happens to resources is heard of, or nothing is to be heard yet."""
        return self._resources is None or self._resources.is_alive

    def wake(self, job_uid: str) -> None:
        """A pod of the job changed."""
        if self._jobs is not None:
            self._jobs.wake(job_uid)

    async def run(self) -> None:
        """Lead. Raises `KopfEnded`."""
        parts = self._parts
        # A pod that is not known yet would be made a second time, or taken for lost.
        for informer in parts.informers:
            await informer.synced.wait()
        parts.collector.lead(parts.holds_lease)
        backend, training, gap = parts.backend(), parts.training(self.wake), asyncio.Event()
        events = EventPoster(parts.client, parts.identity, parts.clock, random.random)

        room = JobRoom()
        tools = self._tools(backend, training, events, room)
        jobs = self._jobs = Jobs(tools, events.catch_up, partial(_forget, backend, training), gap.set)
        inbox = Inbox(tools.processor, jobs.take)
        sweep = Sweep(parts.client, parts.namespaces, lambda: (*jobs.known(), *room.held()), jobs.drop, gap)
        resources = self._resources = ResourceWatch(parts.namespaces, room, inbox.put, time.monotonic, random.random)
        resources.start()
        beside = (
            _supervised("the look for jobs that vanished", sweep.run),
            _supervised("the sending of Events", events.run),
            _supervised("the look for jobs that wait for room", Readmission(parts.client, room, inbox.put).run),
            _supervised("the way of agents here", self._lead_agents_here),
        )
        try:
            await resources.ended.wait()
            raise KopfEnded("kopf ended too often in a row; its messages say why")
        finally:
            resources.stop()
            # Nothing is to be heard any more.
            self._resources = None
            inbox.close()
            await jobs.stop(TURN_SECONDS)
            # The next leader reports what this one did not.
            await _cancel(beside)
            training.backend.close()
            parts.collector.step_down(None)
            # What agents said and were told in this term is nothing to the next one's.
            parts.store.clear()

    async def _lead_agents_here(self) -> None:
        parts = self._parts
        if parts.endpoints is not None:
            await keep_endpoints(parts.client, parts.endpoints, self._term, random.random)

    def _tools(self, backend: KubernetesBackend, training: TrainingLife, events: EventPoster, room: JobRoom) -> Tools:
        parts = self._parts
        return Tools(
            backend=backend,
            store=parts.store,
            desk=Desk(parts.client, WriteBudget(), parts.clock, Told(events), parts.holds_lease, room),
            as_it_runs=partial(as_it_runs, pools=parts.node_pools),
            admit=partial(tenancy.check, tenants=parts.tenancy, default_region=parts.default_region),
            term=self._term,
            clock=parts.clock,
            processor=ProcessorQueue(time.thread_time),
            chance=random.random,
            training=training,
        )


def _supervised(what: str, run: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
    return asyncio.create_task(supervised(what, run, random.random), name=what)


async def _cancel(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


def _forget(backend: KubernetesBackend, training: TrainingLife, job_uid: str) -> None:
    backend.forget(job_uid)
    training.backend.forget(job_uid)
