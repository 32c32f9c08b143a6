"""A job as one group of pods, as each queue's own schema requires."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from jsonschema import Draft202012Validator

from fakes.api_server import ApiServer, make_failure, merge_patch, served
from muster.api.document import JSON
from muster.api.json_fields import read_mapping
from muster.api.spec.job import Job
from muster.backends.kubernetes.agent_config_maps import AgentConfigMaps
from muster.backends.kubernetes.children import QUEUE_NOT_INSTALLED, ChildObjects
from muster.backends.kubernetes.job_state import JobState
from muster.backends.kubernetes.pod_creator import PodCreator
from muster.backends.kubernetes.pod_index import PodIndex
from muster.clients.kubernetes.client import Client
from muster.collector.store import RankStore
from muster.core.actions import CreateNode
from muster.render.kubernetes.gang import render_pod_group
from muster.render.kubernetes.merge import Fields
from muster.render.kubernetes.pod_patch import get_entries
from unit.render.kubernetes.cluster_jobs import SETTING, UID, cluster_job, pod_spec, rendered

VOLCANO: Fields = {"volcano": "research"}
COSCHEDULING: Fields = {"coscheduling": {}}

INT32: dict[str, JSON] = {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1}
QUANTITIES: dict[str, JSON] = {"type": "object", "additionalProperties": {"type": ["integer", "string"]}}

# PodGroup.spec of scheduling.volcano.sh/v1beta1, from Volcano 1.12 (config/crd/volcano/bases).
VOLCANO_SPEC: dict[str, JSON] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "minMember": INT32,
        "minResources": QUANTITIES,
        "minTaskMember": {"type": "object", "additionalProperties": INT32},
        "networkTopology": {"type": "object"},
        "priorityClassName": {"type": "string"},
        "queue": {"type": "string"},
        "preemptable": {"type": "boolean"},
    },
}
# PodGroup.spec of scheduling.x-k8s.io/v1alpha1, from scheduler-plugins 0.27 (manifests/coscheduling/crd.yaml).
COSCHEDULING_SPEC: dict[str, JSON] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {"minMember": INT32, "minResources": QUANTITIES, "scheduleTimeoutSeconds": INT32},
}


def metadata(job: Job, part: str) -> Mapping[str, JSON]:
    return read_mapping(read_mapping(rendered(job)["metadata"]).get(part))


@pytest.mark.parametrize(
    ("queue", "api_version", "schema", "spec"),
    [
        (VOLCANO, "scheduling.volcano.sh/v1beta1", VOLCANO_SPEC, {"minMember": 4, "queue": "research"}),
        (COSCHEDULING, "scheduling.x-k8s.io/v1alpha1", COSCHEDULING_SPEC, {"minMember": 4}),
    ],
)
def test_a_pod_group_is_what_its_scheduler_s_schema_wants(
    queue: Fields, api_version: str, schema: dict[str, JSON], spec: Fields
) -> None:
    group = render_pod_group(cluster_job(queue=queue, nodes=4))
    assert group is not None
    Draft202012Validator(schema).validate(group.body["spec"])
    assert group.body["spec"] == spec
    assert (group.body["apiVersion"], group.body["kind"]) == (api_version, "PodGroup")
    assert get_entries(read_mapping(group.body["metadata"]), "ownerReferences")[0]["uid"] == UID
    assert group.kind.build_path("team") == f"/apis/{api_version}/namespaces/team/podgroups"


def test_pods_belong_to_volcano_s_group() -> None:
    job = cluster_job(queue=VOLCANO)
    assert pod_spec(job)["schedulerName"] == "volcano"
    assert metadata(job, "annotations")["scheduling.k8s.io/group-name"] == "vit-muster"


def test_pods_belong_to_the_coscheduling_group() -> None:
    job = cluster_job(queue=COSCHEDULING)
    assert pod_spec(job)["schedulerName"] == "scheduler-plugins-scheduler"
    assert metadata(job, "labels")["scheduling.x-k8s.io/pod-group"] == "vit-muster"
    own = cluster_job(queue={"coscheduling": {"schedulerName": "gangs"}})
    assert pod_spec(own)["schedulerName"] == "gangs"


@pytest.mark.parametrize("queue", [VOLCANO, COSCHEDULING])
def test_a_pod_group_does_not_wait_for_spares(queue: JSON) -> None:
    group = render_pod_group(cluster_job(queue=queue, nodes=4, spares=2))
    assert group is not None
    assert read_mapping(group.body["spec"])["minMember"] == 4


def test_the_owner_s_scheduler_counts() -> None:
    job = cluster_job(queue=VOLCANO, template={"spec": {"schedulerName": "volcano-canary"}})
    assert pod_spec(job)["schedulerName"] == "volcano-canary"


@dataclass
class Objects(ApiServer):
    """Stores objects by their paths; has only the API groups that are `installed`."""

    installed: tuple[str, ...] = ("", "scheduling.volcano.sh")
    objects: dict[str, dict[str, Any]] = field(default_factory=dict)
    made: list[str] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        path = request.path
        group = path.split("/")[2] if path.startswith("/apis/") else ""
        if group not in self.installed:
            return make_failure(404, "NotFound", "the server could not find the requested resource")
        body = await request.json() if request.can_read_body else {}
        if request.method == "POST":
            path = f"{path}/{body['metadata']['name']}"
            self.made.append(path)
            if path in self.objects:
                return make_failure(409, "AlreadyExists", "it is there")
            self.objects[path] = {**body, "metadata": {**body["metadata"], "uid": path}}
        elif path not in self.objects:
            return make_failure(404, "NotFound", "there is none")
        elif request.method == "PATCH":
            self.patches.append(body)
            self.objects[path] = merge_patch(self.objects[path], body)
        return web.json_response(self.objects[path])


GROUP_PATH = "/apis/scheduling.volcano.sh/v1beta1/namespaces/team/podgroups/vit-muster"


def children(client: Client) -> ChildObjects:
    return ChildObjects(
        client, SETTING, AgentConfigMaps(client, SETTING.agent_config_map, {UID}.__contains__), lambda: "PEM"
    )


async def test_the_group_is_made_and_kept_current(tmp_path: Path) -> None:
    server = Objects(None)
    async with asyncio.timeout(10), served(server, tmp_path) as client:
        job = cluster_job(queue=VOLCANO, procsPerNode=1)
        assert await children(client).write_pod_group(job) is None
        assert await children(client).write_service_and_config_maps(job) is None
        server.objects[GROUP_PATH]["spec"]["minResources"] = {"cpu": "1"}
        assert await children(client).write_pod_group(job) is None
        assert server.patches == []
        larger = cluster_job(queue=VOLCANO, procsPerNode=1, nodes=8)
        assert await children(client).write_pod_group(larger) is None
        assert server.objects[GROUP_PATH]["spec"] == {
            "minMember": 8,
            "queue": "research",
            "minResources": {"cpu": "1"},
        }


async def test_the_group_is_there_before_a_pod_is_even_rehearsed(tmp_path: Path) -> None:
    """Volcano's webhook refuses pods of a missing group, also in a dry run."""
    server = Objects(None)
    async with asyncio.timeout(10), served(server, tmp_path) as client:
        store, made = RankStore(), children(client)
        creation = PodCreator(client, PodIndex(lambda _: None, lambda: 1.8e9), store, SETTING, made, lambda: 1.8e9)
        await creation.create(cluster_job(queue=VOLCANO, procsPerNode=1), JobState(), [CreateNode(0, 0)])
    first, *later = server.made
    assert first == GROUP_PATH
    assert all("podgroups" not in path for path in later)
    assert "/api/v1/namespaces/team/pods/vit-0-0" in later


async def test_a_missing_queue_is_reported(tmp_path: Path) -> None:
    async with asyncio.timeout(10), served(Objects(None), tmp_path) as client:
        refusal = await children(client).write_pod_group(cluster_job(queue=COSCHEDULING, procsPerNode=1))
        assert await children(client).write_pod_group(cluster_job(queue={"kueue": "a"})) is None
    assert refusal is not None
    assert refusal.problem.reason == QUEUE_NOT_INSTALLED
    assert "podgroups.scheduling.x-k8s.io" in refusal.problem.message
    assert not refusal.is_final
