"""A job's resource on an API server, successive operators, and a clock that the test sets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from muster.api.document import JSON
from muster.api.json_fields import read_mapping, read_string
from muster.api.spec.job import Job, Metadata, Spec
from muster.backends.kubernetes.backend import KubernetesBackend
from muster.backends.kubernetes.pod_index import PodIndex
from muster.clients.kubernetes.client import Client
from muster.clients.kubernetes.informer import Informer
from muster.collector.store import RankStore
from muster.collector.trust.attempt_credentials import SEED_BYTES
from muster.core.actions import Action, CreateNode
from muster.core.facts import NodeFacts
from muster.core.reports.check import JobShape
from muster.core.world import get_procs_per_node
from muster.objects.kubernetes.kinds import JOBS, PODS, Object
from muster.objects.kubernetes.names import build_agent_name
from muster.render.agent_archive import build_agent_archive
from muster.render.kubernetes.pod_settings import PodSettings

JSONObject = dict[str, JSON]

NOBODY = "nobody"
"""A scheduler that doesn't exist: pods remain as they were created."""


class Clock:
    """Unix seconds, set by the test."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Operator:
    """An operator's process: its pods, its store, its backend."""

    client: Client
    clock: Clock
    authority: str = "first"
    store: RankStore = field(default_factory=RankStore)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.pods = PodIndex(lambda _: self.changed.set(), self.clock)
        pod_settings = PodSettings(
            "cluster.local", "https://collector.muster-system.svc:8443", build_agent_name(build_agent_archive())
        )
        self.backend = KubernetesBackend(
            self.client,
            self.pods,
            self.store,
            pod_settings,
            lambda: self.authority,
            lambda: bytes(SEED_BYTES),
            self.clock,
        )

    async def nodes(self, job: Job) -> tuple[NodeFacts, ...]:
        return (await self.backend.observe(job)).nodes

    async def apply(self, job: Job, *actions: Action) -> None:
        self.store.register_job(JobShape(job.metadata.uid, job.spec.nodes, get_procs_per_node(job), self.clock()))
        await self.backend.apply(job, actions)

    async def create(self, job: Job, replacement: int = 0) -> None:
        await self.apply(job, *(CreateNode(node, replacement) for node in range(job.spec.nodes)))

    @asynccontextmanager
    async def informed(self, namespace: str) -> AsyncIterator[None]:
        """Start an informer that reports the namespace's pods."""
        informer = Informer(self.client, PODS, (namespace,), self.pods.handle_change)
        task = asyncio.create_task(informer.run())
        try:
            await informer.synced.wait()
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def until_changed(self) -> None:
        await self.changed.wait()
        self.changed.clear()


@dataclass
class World:
    """`job` is the resource as created, `fields` the content of its spec."""

    client: Client
    namespace: str
    uid: str
    clock: Clock
    generation: int = 1

    @classmethod
    async def begin(cls, client: Client, namespace: str) -> World:
        body: Object = {
            "apiVersion": JOBS.api_version,
            "kind": JOBS.name,
            "metadata": {"name": "vit", "namespace": namespace},
            "spec": dict(_fields()),
        }
        made = await client.create(JOBS, namespace, body)
        return cls(client, namespace, read_string(read_mapping(made.get("metadata")).get("uid")), Clock())

    def job(self, **fields: JSON) -> Job:
        """Return the job with these fields in its spec; each call may be another generation of the resource."""
        metadata = Metadata(
            name="vit",
            namespace=self.namespace,
            uid=self.uid,
            generation=self.generation,
            creation_timestamp="2026-11-21T12:00:00Z",
        )
        return Job(metadata=metadata, spec=Spec.model_validate_json(json.dumps({**_fields(), **fields})))

    def operator(self, client: Client | None = None) -> Operator:
        """Start a new process."""
        return Operator(client or self.client, self.clock)

    async def pods(self) -> list[str]:
        return sorted(_name(pod) for pod in (await self.client.list(PODS, self.namespace)).items)


def _fields() -> JSONObject:
    return {
        "nodes": 2,
        "procsPerNode": 1,
        "launcher": {"direct": {}},
        "image": "cluster.muster.dev/python:1",
        "command": ["true"],
        "template": {"spec": {"schedulerName": NOBODY}},
    }


def _name(item: Object) -> str:
    return read_string(read_mapping(item.get("metadata")).get("name"))
