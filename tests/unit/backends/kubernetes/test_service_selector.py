"""The Service selects the pods of a job once they have addresses."""

from pathlib import Path

import pytest
from aiohttp import web

from fakes.api_client import api_client
from muster.api.document import JSON
from muster.backends.kubernetes.agent_config_maps import AgentConfigMaps
from muster.backends.kubernetes.children import ChildObjects, add_service_selector
from muster.backends.kubernetes.job_state import JobState
from muster.backends.kubernetes.pod_index import PodIndex
from muster.clients.kubernetes.client import Change
from unit.core.builders import START
from unit.render.kubernetes.cluster_jobs import SETTING, UID, cluster_job, rendered

JOB = cluster_job(nodes=2)
SERVICE: JSON = {"metadata": {"uid": "a-service", "ownerReferences": []}, "spec": {}}

WAITING: dict[str, JSON] = {"phase": "Pending"}
RUNNING: dict[str, JSON] = {"phase": "Running", "podIP": "10.0.0.1"}
ENDED: dict[str, JSON] = {"phase": "Succeeded", "podIP": "10.0.0.1"}


def make_index(*statuses: dict[str, JSON]) -> PodIndex:
    index = PodIndex(lambda _: None, lambda: START)
    index.expect(UID, "team")
    for node, status in enumerate(statuses):
        pod = rendered(JOB, node, 0)
        metadata = pod["metadata"]
        assert isinstance(metadata, dict)
        metadata |= {"uid": f"pod-{node}", "namespace": "team"}
        index.handle_change(Change("ADDED", {**pod, "status": status}))
    return index


@pytest.mark.parametrize(
    ("statuses", "requests"),
    [
        ((RUNNING,), []),
        ((RUNNING, WAITING), []),
        ((RUNNING, RUNNING), ["GET"]),
        # A new leader need not read the Services of ended jobs.
        ((RUNNING, ENDED), []),
        ((ENDED, ENDED), []),
    ],
)
async def test_the_service_is_read_once_all_running_pods_have_addresses(
    tmp_path: Path, statuses: tuple[dict[str, JSON], ...], requests: list[str]
) -> None:
    received: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        received.append(request.method)
        return web.json_response(SERVICE)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    job_state, index = JobState(), make_index(*statuses)
    async with api_client(app, tmp_path) as client:
        agent_config_maps = AgentConfigMaps(client, SETTING.agent_config_map, {UID}.__contains__)
        children = ChildObjects(client, SETTING, agent_config_maps, lambda: "PEM")
        await add_service_selector(JOB, job_state, index, children)
        await add_service_selector(JOB, job_state, index, children)
    assert received == requests
    assert job_state.service_has_selector == bool(requests)
