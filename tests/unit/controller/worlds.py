"""Backends whose facts a test sets, with controllers and jobs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from fakes.api_server import ApiServer, served
from muster.api.config.operator import OperatorConfig
from muster.api.config.tenancy import check_tenancy
from muster.api.spec.job import Job
from muster.backends.node_jobs import NodeJobs
from muster.clients.aws.client import Aws
from muster.clients.kubernetes.client import Change, Client
from muster.collector.store import RankStore
from muster.controller.backends import apply_defaults, make_sagemaker_jobs
from muster.controller.jobs.job_controller import JobControllerDependencies
from muster.controller.jobs.jobs import Jobs
from muster.controller.jobs.processor_queue import ProcessorQueue
from muster.controller.status.write_budget import WriteBudget
from muster.controller.status.writer import StatusWriterDependencies
from muster.core.actions import Action
from muster.core.edited_source import RequestedSource
from muster.core.facts import JobFacts, NodeFacts, ProcessFacts, ProcessState
from muster.objects.kubernetes.resource import Resource
from unit.controller.cluster_resources import resource

WAITING = ProcessFacts(ProcessState.WAITING)


@dataclass
class World:
    """A backend of pods that are `process`; reconciling job vit raises `problem`, once each. Counts reconciliations by
    job.
    """

    process: ProcessFacts = WAITING
    problem: list[Exception] = field(default_factory=list)
    applied: list[Action] = field(default_factory=list)
    turns: dict[str, int] = field(default_factory=dict)
    turned: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def observe(self, job: Job) -> JobFacts:
        async with self.turned:
            self.turns[job.metadata.name] = self.turns.get(job.metadata.name, 0) + 1
            self.turned.notify_all()
        if self.problem and job.metadata.name == "vit":
            raise self.problem.pop(0)
        nodes = tuple(NodeFacts(node, f"{job.metadata.name}-{node}", self.process) for node in range(job.spec.nodes))
        return JobFacts(time.time(), nodes, 5.0)

    async def apply(self, _: Job, actions: Sequence[Action]) -> None:
        self.applied += actions

    async def find_source(self, job: Job, name: str) -> RequestedSource:
        raise AssertionError(f"{job.metadata.name} names {name}")

    def forget(self, job_uid: str) -> None:
        """Do nothing: there is no state."""

    async def turn(self, number: int, name: str = "vit") -> None:
        """Wait until the job's reconciliation with this number has started."""
        async with asyncio.timeout(10), self.turned:
            await self.turned.wait_for(lambda: self.turns.get(name, 0) >= number)


class Cpu:
    """A processor clock by which each reconciliation takes `seconds`."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._now = 0.0

    def __call__(self) -> float:
        self._now += self.seconds
        return self._now


@dataclass
class Site:
    """All jobs of one leader, over an API server with one resource."""

    server: ApiServer
    client: Client
    world: World = field(default_factory=World)
    store: RankStore = field(default_factory=RankStore)
    met: list[Resource] = field(default_factory=list)
    forgotten: list[str] = field(default_factory=list)
    cpu: Cpu = field(default_factory=Cpu)
    relistings: int = 0
    holds_lease: bool = True
    jobs: Jobs = field(init=False)

    def __post_init__(self) -> None:
        tools = JobControllerDependencies(
            backends={
                "Kubernetes": NodeJobs(self.world, 1),
                "SageMaker": make_sagemaker_jobs(
                    Aws(), self.client, OperatorConfig(), lambda _: None, time.time, lambda _: None
                ),
            },
            store=self.store,
            status_writer=StatusWriterDependencies(
                self.client, WriteBudget(), time.time, lambda *_: None, lambda: self.holds_lease
            ),
            apply_defaults=partial(apply_defaults, config=OperatorConfig()),
            admit=partial(check_tenancy, tenants=(), default_region=""),
            clock=time.time,
            processor=ProcessorQueue(self.cpu),
            jitter=lambda: 0.0,
        )
        self.jobs = Jobs(tools, self.met.append, self.forgotten.append, self._relisted)

    def hear(self, **fields: Any) -> None:
        """kopf reports a resource as it is stored, or with these `fields`."""
        source = resource(**fields) if fields else self.server.resource
        assert source is not None
        self.jobs.handle_change(Change("MODIFIED", source))

    def _relisted(self) -> None:
        self.relistings += 1


@asynccontextmanager
async def site(folder: Path, **fields: Any) -> AsyncIterator[Site]:
    """Yield a leader's jobs, which are stopped at the end."""
    server = ApiServer(dict(resource(**fields)))
    async with served(server, folder) as client:
        here = Site(server, client)
        try:
            yield here
        finally:
            await here.jobs.stop(0.0)
