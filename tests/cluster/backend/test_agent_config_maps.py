"""The ConfigMap with the agent: one for each namespace, as long as the namespace has a job."""

import asyncio
import json
from dataclasses import dataclass, field

import pytest

from muster.api.document import JSON
from muster.api.json_fields import read_mapping, read_string
from muster.api.spec.job import Job, Metadata, Spec
from muster.backends.kubernetes.agent_config_maps import AgentConfigMaps
from muster.clients.kubernetes.client import Client
from muster.objects.kubernetes.kinds import CONFIG_MAPS, JOBS, Object
from muster.objects.kubernetes.names import build_agent_name
from muster.objects.kubernetes.pods import read_owner_uid
from muster.render.agent_archive import build_agent_archive

NAME = build_agent_name(build_agent_archive())
FIELDS: dict[str, JSON] = {
    "nodes": 1,
    "procsPerNode": 1,
    "launcher": {"direct": {}},
    "image": "cluster.muster.dev/python:1",
    "command": ["true"],
}


@dataclass
class Team:
    """A namespace, and the uids of its jobs that the operator knows."""

    client: Client
    namespace: str
    known: set[str] = field(default_factory=set)

    def new_operator(self) -> AgentConfigMaps:
        return AgentConfigMaps(self.client, NAME, self.known.__contains__)

    async def create_job(self, name: str) -> Job:
        body: Object = {
            "apiVersion": JOBS.api_version,
            "kind": JOBS.name,
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {**FIELDS},
        }
        created = await self.client.create(JOBS, self.namespace, body)
        uid = read_string(read_mapping(created["metadata"]).get("uid"))
        self.known.add(uid)
        return Job(
            metadata=Metadata(name=name, namespace=self.namespace, uid=uid),
            spec=Spec.model_validate_json(json.dumps(FIELDS)),
        )

    async def delete_job(self, job: Job) -> None:
        await self.client.delete(JOBS, self.namespace, job.metadata.name)

    async def read(self) -> Object:
        return await self.client.get(CONFIG_MAPS, self.namespace, NAME)

    async def version(self) -> JSON:
        return read_mapping((await self.read())["metadata"])["resourceVersion"]

    async def wait_until_deleted(self) -> None:
        listing = await self.client.list(CONFIG_MAPS, self.namespace, fields=f"metadata.name={NAME}")
        if listing.items:
            async for change in self.client.watch(
                CONFIG_MAPS,
                self.namespace,
                resource_version=listing.resource_version,
                fields=f"metadata.name={NAME}",
            ):
                if change.type == "DELETED":
                    return


@pytest.fixture
async def team(crd: None, client: Client, namespace: str) -> Team:
    """Return a namespace without jobs."""
    del crd  # the cluster has it
    return Team(client, namespace)


async def test_the_jobs_of_a_namespace_share_it(team: Team) -> None:
    first, second = await team.create_job("first"), await team.create_job("second")
    operator = team.new_operator()
    refusals = await asyncio.gather(operator.make(first), operator.make(second))
    assert not any(refusals)
    created = await team.version()
    assert await operator.make(second) is None
    assert await team.new_operator().make(second) is None
    assert await team.version() == created
    assert read_owner_uid(await team.read()) == first.metadata.uid


async def test_another_job_becomes_the_owner_when_the_first_one_is_deleted(team: Team) -> None:
    first, second = await team.create_job("first"), await team.create_job("second")
    operator = team.new_operator()
    await operator.make(first)
    team.known.discard(first.metadata.uid)
    assert await operator.make(second) is None
    assert read_owner_uid(await team.read()) == second.metadata.uid


async def test_it_is_deleted_with_the_last_job_and_created_for_the_next_one(team: Team) -> None:
    first = await team.create_job("first")
    operator = team.new_operator()
    await operator.make(first)
    await team.delete_job(first)
    team.known.discard(first.metadata.uid)
    async with asyncio.timeout(60):
        await team.wait_until_deleted()
    second = await team.create_job("second")
    assert await operator.make(second) is None
    assert read_owner_uid(await team.read()) == second.metadata.uid
