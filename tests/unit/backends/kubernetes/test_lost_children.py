"""What a job's objects need when users delete them, or when another owner's pod still has a pod's name."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from fakes.api_client import api_client
from fakes.api_server import make_failure, merge_patch
from muster.api.json_fields import read_mapping
from muster.backends.kubernetes.backend import KubernetesBackend
from muster.clients.kubernetes.client import Change
from muster.core.actions import CreateNode, SendCommand
from muster.core.reports.job_shape import make_job_shape
from muster.objects.kubernetes.errors import ApiError
from muster_worker.contract.schema import Command, CommandKind
from unit.backends.kubernetes.test_slices import get_time, make_backend
from unit.render.kubernetes.cluster_jobs import SETTING, UID, cluster_job

UNDATED = cluster_job(nodes=1, procsPerNode=1)
CREATED = UNDATED.metadata.model_copy(update={"creation_timestamp": "2027-01-15T08:00:00Z"})
JOB = UNDATED.model_copy(update={"metadata": CREATED})
SERVICE = "services/vit-muster"
AGENT = f"configmaps/{SETTING.agent_config_map}"


@dataclass
class Objects:
    """The objects of namespace `team` by plural and name, and the requests that the API server got.

    It executes the first creation of each plural in `unanswered`, and breaks the connection instead of an answer. It
    answers creations of pods with `refusal`.
    """

    stored: dict[str, dict[str, Any]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    unanswered: set[str] = field(default_factory=set)
    refusal: ApiError | None = None

    async def handle(self, request: web.Request) -> web.Response:
        body = await request.json() if request.can_read_body else {}
        key = request.path.removeprefix("/api/v1/namespaces/team/")
        if request.method == "POST":
            key = f"{key}/{body['metadata']['name']}"
        self.requests.append(f"{request.method} {key}")
        plural = key.partition("/")[0]
        if request.method == "POST" and plural == "pods" and self.refusal is not None:
            return make_failure(self.refusal.status, self.refusal.reason, self.refusal.message)
        if request.method == "POST" and key in self.stored:
            return make_failure(409, "AlreadyExists", "it is there")
        if "dryRun" in request.query:
            return web.json_response(body)
        if request.method == "POST":
            self.stored[key] = {**body, "metadata": {**body["metadata"], "uid": f"{key} {len(self.requests)}"}}
            if plural in self.unanswered:
                self.unanswered.discard(plural)
                assert request.transport is not None
                request.transport.abort()
        elif key not in self.stored:
            return make_failure(404, "NotFound", "there is none")
        elif request.method == "PATCH":
            self.stored[key] = merge_patch(self.stored[key], body)
        elif request.method == "DELETE":
            return web.json_response(self.stored.pop(key))
        return web.json_response(self.stored[key])

    def take_requests(self, key: str) -> list[str]:
        """Return the methods of the requests about this object since the last call."""
        methods = [request.split()[0] for request in self.requests if request.endswith(f" {key}")]
        self.requests = [request for request in self.requests if not request.endswith(f" {key}")]
        return methods

    def run_pod(self, backend: KubernetesBackend, name: str = "vit-0-0") -> None:
        """Report to the backend that the pod runs."""
        pod = {**self.stored[f"pods/{name}"], "status": {"phase": "Running", "podIP": "10.0.0.1"}}
        backend.pods.handle_change(Change("MODIFIED", pod))


@asynccontextmanager
async def serve(
    folder: Path, clock: Callable[[], float] = get_time, get_ca_bundle: Callable[[], str] = lambda: "PEM"
) -> AsyncIterator[tuple[Objects, KubernetesBackend]]:
    objects, app = Objects(), web.Application(client_max_size=2**20)
    app.router.add_route("*", "/{path:.*}", objects.handle)
    async with api_client(app, folder) as client:
        yield objects, make_backend(client, clock, get_ca_bundle)


def start(attempt: int) -> SendCommand:
    return SendCommand((0,), Command(1, UID, attempt, CommandKind.START))


def selector(objects: Objects) -> object:
    return read_mapping(objects.stored[SERVICE]["spec"]).get("selector")


async def test_the_service_is_looked_for_once_for_each_restart_and_created_again(tmp_path: Path) -> None:
    async with serve(tmp_path) as (objects, backend):
        backend.store.register_job(make_job_shape(JOB, "team"))
        await backend.apply(JOB, [CreateNode(0, 0)])
        objects.run_pod(backend)
        await backend.apply(JOB, [])
        assert objects.take_requests(SERVICE) == ["POST", "GET", "PATCH"]
        # It is new when the first attempt starts.
        await backend.apply(JOB, [start(1)])
        assert objects.take_requests(SERVICE) == []

        del objects.stored[SERVICE]
        for _ in range(2):
            await backend.apply(JOB, [start(2)])
        assert objects.take_requests(SERVICE) == ["GET", "POST", "GET", "PATCH"]
        assert selector(objects) == {"muster.dev/job-uid": UID}
        await backend.apply(JOB, [start(3)])
        assert objects.take_requests(SERVICE) == ["GET"]


async def test_the_agents_config_map_is_looked_for_with_each_pod_that_replaces_another(tmp_path: Path) -> None:
    async with serve(tmp_path) as (objects, backend):
        await backend.apply(JOB, [CreateNode(0, 0)])
        assert objects.take_requests(AGENT) == ["POST"]
        await backend.apply(JOB, [CreateNode(0, 1)])
        assert objects.take_requests(AGENT) == ["GET"]

        del objects.stored[AGENT]
        await backend.apply(JOB, [CreateNode(0, 2)])
        assert objects.take_requests(AGENT) == ["GET", "POST"]


@pytest.mark.parametrize(
    "change", [{"binaryData": {}}, {"binaryData": {"agent.pyz": "ZXZpbA=="}}, {"immutable": False}]
)
async def test_a_users_config_map_of_the_agents_name_is_refused_for_the_next_pod(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    async with serve(tmp_path) as (objects, backend):
        await backend.apply(JOB, [CreateNode(0, 0)])
        agent = objects.stored[AGENT]
        assert agent["immutable"]
        metadata = {"name": SETTING.agent_config_map, "uid": "mine"}
        objects.stored[AGENT] = {"metadata": metadata, "binaryData": agent["binaryData"], "immutable": True, **change}
        backend.pods.forget(UID)
        await backend.apply(JOB, [CreateNode(0, 1)])
        (node,) = (await backend.observe(JOB)).nodes
    assert node.process.problem is not None
    assert node.process.problem.reason == "NameTaken"
    assert f"ConfigMap {SETTING.agent_config_map} in namespace team" in node.process.problem.message
    assert "pods/vit-0-1" not in objects.stored


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({}, "exists and belongs to another owner: delete it first"),
        (
            {"deletionTimestamp": "2027-01-15T08:00:00Z", "deletionGracePeriodSeconds": 30},
            "belongs to another owner and is being deleted: muster waits until it is gone",
        ),
    ],
)
async def test_a_pod_of_an_earlier_job_is_waited_for_while_it_is_being_deleted(
    tmp_path: Path, metadata: dict[str, Any], message: str
) -> None:
    """Delete a job, and create one of the same name at once."""
    earlier = JOB.model_copy(update={"metadata": JOB.metadata.model_copy(update={"uid": "earlier"})})
    async with serve(tmp_path) as (objects, backend):
        await backend.apply(earlier, [CreateNode(0, 0)])
        for key in (SERVICE, "configmaps/vit-muster"):
            del objects.stored[key]
        objects.stored["pods/vit-0-0"]["metadata"] |= metadata
        await backend.apply(JOB, [CreateNode(0, 0)])
        (node,) = (await backend.observe(JOB)).nodes
    assert node.process.problem is not None
    assert node.process.problem.message == f"Pod vit-0-0 in namespace team {message}"
