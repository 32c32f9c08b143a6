"""A large job's pods are created and processed in slices, between which the event loop serves others."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aiohttp import web

from fakes.api_client import api_client
from muster.api.document import JSON
from muster.api.spec.job import Job
from muster.backends.kubernetes.backend import NODES_PER_SLICE, KubernetesBackend
from muster.backends.kubernetes.pod_creator import MAX_CONCURRENT_CREATES
from muster.backends.kubernetes.pod_index import PodIndex
from muster.clients.kubernetes.client import Client
from muster.collector.store import RankStore
from muster.collector.trust.attempt_credentials import SEED_BYTES
from muster.core.actions import CreateNode
from support.loop_rounds import measured_rounds
from unit.render.kubernetes.cluster_jobs import SETTING, cluster_job

NODES = 32


def get_time() -> float:
    return 1_800_000_000.0


def make_backend(
    client: Client, clock: Callable[[], float] = get_time, get_ca_bundle: Callable[[], str] = lambda: "PEM"
) -> KubernetesBackend:
    pods = PodIndex(lambda _: None, clock)
    return KubernetesBackend(client, pods, RankStore(), SETTING, get_ca_bundle, lambda: bytes(SEED_BYTES), clock)


def _large_job(nodes: int) -> Job:
    tolerations: list[JSON] = [{"key": f"machine-{index}", "operator": "Exists"} for index in range(1500)]
    return cluster_job(nodes=nodes, procsPerNode=1, template={"spec": {"tolerations": tolerations}})


async def create_object(request: web.Request) -> web.Response:
    body: dict[str, Any] = await request.json()
    body["metadata"]["uid"] = body["metadata"]["name"]
    return web.json_response(body)


async def test_pods_of_a_job_are_rendered_one_after_the_other(tmp_path: Path) -> None:
    app = web.Application(client_max_size=2**20)
    app.router.add_route("POST", "/{path:.*}", create_object)
    job = _large_job(NODES)
    async with api_client(app, tmp_path) as client:
        backend = make_backend(client)
        async with measured_rounds() as rounds:
            await backend.apply(job, [CreateNode(node, 0) for node in range(NODES)])
        assert len(backend.pods.list_pods(job.metadata.uid)) == NODES
    assert rounds.longest < rounds.total / 3


async def test_pods_that_wait_to_be_made_have_no_task_of_their_own(tmp_path: Path) -> None:
    tasks: list[int] = []

    async def created(request: web.Request) -> web.Response:
        tasks.append(len(asyncio.all_tasks()))
        return await create_object(request)

    app = web.Application()
    app.router.add_route("POST", "/{path:.*}", created)
    nodes = 5 * MAX_CONCURRENT_CREATES
    job = cluster_job(nodes=nodes, procsPerNode=1)
    async with api_client(app, tmp_path) as client:
        backend = make_backend(client)
        await backend.apply(job, [CreateNode(node, 0) for node in range(nodes)])
        assert len(backend.pods.list_pods(job.metadata.uid)) == nodes
    # the server and its connections use as many iterations as there are requests
    assert max(tasks) < 4 * MAX_CONCURRENT_CREATES


async def test_a_large_job_is_looked_at_in_pieces(tmp_path: Path) -> None:
    undated = cluster_job(nodes=10 * NODES_PER_SLICE, procsPerNode=1)
    dated = undated.metadata.model_copy(update={"creation_timestamp": "2027-01-15T08:00:00Z"})
    job = undated.model_copy(update={"metadata": dated})
    async with api_client(web.Application(), tmp_path) as client:
        backend = make_backend(client)
        async with measured_rounds() as rounds:
            facts = await backend.observe(job)
    assert [node.node for node in facts.nodes] == list(range(job.spec.nodes))
    assert rounds.longest < rounds.total / 2
