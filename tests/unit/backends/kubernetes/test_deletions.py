"""The operator's log says why muster deletes a pod."""

from pathlib import Path

import pytest
from aiohttp import web

from fakes.api_client import api_client
from muster.core.actions import CreateNode, KillNode, RemoveNode
from unit.backends.kubernetes.test_slices import create_object, make_backend
from unit.render.kubernetes.cluster_jobs import cluster_job


async def test_the_log_says_once_why_a_pod_is_deleted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def delete_object(request: web.Request) -> web.Response:
        deleted.append(request.path.rpartition("/")[2])
        return web.json_response({"kind": "Status"})

    deleted: list[str] = []
    app = web.Application(client_max_size=2**20)
    app.router.add_route("POST", "/{path:.*}", create_object)
    app.router.add_route("DELETE", "/{path:.*}", delete_object)
    job = cluster_job(nodes=3, procsPerNode=1)
    async with api_client(app, tmp_path) as client:
        backend = make_backend(client)
        await backend.apply(job, [CreateNode(node, 0) for node in range(3)])
        with caplog.at_level("INFO", logger="muster.backends.kubernetes.backend"):
            for _ in range(2):
                await backend.apply(
                    job, [KillNode(1, "its Kubernetes node is lost"), RemoveNode(2, 10.0, "the job is suspended")]
                )
    name, namespace = job.metadata.name, job.metadata.namespace
    assert sorted(deleted) == [f"{name}-1-0", f"{name}-2-0"]
    assert sorted(caplog.messages) == [
        f"{namespace}: muster deletes the pod {name}-1-0: its Kubernetes node is lost",
        f"{namespace}: muster deletes the pod {name}-2-0: the job is suspended",
    ]
