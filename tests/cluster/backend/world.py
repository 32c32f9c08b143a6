"""A job's resource on an API server, and successive operators."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from muster.api.document import JSON
from muster.api.json_fields import read_mapping, read_string
from muster.api.spec.job import Job, Metadata, Spec
from muster.backends.kubernetes.backend import KubernetesBackend
from muster.backends.kubernetes.pod_index import PodIndex
from muster.clients.kubernetes.client import Client
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


def get_time() -> float:
    return 1_800_000_000.0


@dataclass
class Operator:
    """An operator's process: its pods, its store, its backend."""

    client: Client
    authority: str = "first"
    store: RankStore = field(default_factory=RankStore)

    def __post_init__(self) -> None:
        self.pods = PodIndex(lambda _: None, get_time)
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
            get_time,
        )

    async def nodes(self, job: Job) -> tuple[NodeFacts, ...]:
        return (await self.backend.observe(job)).nodes

    async def apply(self, job: Job, *actions: Action) -> None:
        self.store.register_job(JobShape(job.metadata.uid, job.spec.nodes, get_procs_per_node(job), get_time()))
        await self.backend.apply(job, actions)

    async def create(self, job: Job) -> None:
        await self.apply(job, *(CreateNode(node, 0) for node in range(job.spec.nodes)))


@dataclass
class World:
    """`job` is the resource as created, `fields` the content of its spec."""

    client: Client
    namespace: str
    uid: str
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
        return cls(client, namespace, read_string(read_mapping(made.get("metadata")).get("uid")))

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
        return Operator(client or self.client)

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
