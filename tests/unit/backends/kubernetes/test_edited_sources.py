"""Which ConfigMaps the operator accepts as a job's edited code. A tenant can write any of them."""

import base64
import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from fakes.api_client import api_client
from fakes.api_server import make_failure
from muster.api.timestamps import format_timestamp_milliseconds
from muster.backends.kubernetes.backend import KubernetesBackend
from muster.backends.kubernetes.edited_sources import (
    NO_MEMORY,
    SOURCE_SECONDS,
    EditedSources,
    SourceRefused,
    check_source,
)
from muster.backends.kubernetes.job_state import JobState
from muster.backends.kubernetes.pod_index import PodIndex
from muster.cli.jobs.source_config_map import make_config_map
from muster.cli.jobs.source_files import PackedSource
from muster.collector.memory_limits import MemoryLimits, ObjectSize
from muster.collector.store import RankStore
from muster.collector.trust.attempt_credentials import SEED_BYTES
from muster.core.actions import SendCommand
from muster.core.edited_source import RequestedSource
from muster.core.reports.check import JobShape
from muster.objects.kubernetes.containers import Container, Running
from muster.objects.kubernetes.names import SOURCE_KEY, build_source_name
from muster.objects.kubernetes.pods import PodView
from muster.render.kubernetes.pod_settings import PodSettings
from muster_worker.contract.schema import Command, CommandKind
from muster_worker.contract.source import MAX_SOURCE_BYTES, EditedSource
from unit.core.builders import T0, UID, job

ARCHIVE = b"an archive"
SHA256 = hashlib.sha256(ARCHIVE).hexdigest()
NAME = build_source_name("digits", SHA256)


def stored(archive: bytes = ARCHIVE, job_name: str = "digits", uid: str = UID) -> Any:
    packed = PackedSource(archive, hashlib.sha256(archive).hexdigest(), frozenset())
    return make_config_map({"metadata": {"name": job_name, "uid": uid}}, packed)


def changed(change: Callable[[Any], object]) -> Any:
    body = stored()
    change(body)
    return body


def test_what_the_command_sends_is_accepted() -> None:
    body = stored()
    assert body["metadata"]["name"] == NAME
    assert check_source(body, job(), NAME) == EditedSource(SHA256, base64.b64encode(ARCHIVE).decode())


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (stored(uid="other"), "does not belong to this job"),
        (changed(lambda body: body["metadata"].pop("ownerReferences")), "does not belong to this job"),
        (changed(lambda body: body["metadata"]["ownerReferences"][0].update(uid="other")), "does not belong"),
        (changed(lambda body: body["metadata"].pop("labels")), "does not belong to this job"),
        (changed(lambda body: body["metadata"]["labels"].update({"muster.dev/job-uid": "other"})), "does not belong"),
        (changed(lambda body: body.pop("immutable")), "not immutable"),
        (changed(lambda body: body.update(immutable="true")), "not immutable"),
        (changed(lambda body: body.pop("binaryData")), "has 0 bytes"),
        (changed(lambda body: body.update(binaryData={"other": "YQ=="})), "has 0 bytes"),
        (changed(lambda body: body.update(binaryData={SOURCE_KEY: 7})), "has 0 bytes"),
        (changed(lambda body: body.update(binaryData={SOURCE_KEY: "a b"})), "not in Base64"),
        (changed(lambda body: body.update(binaryData={SOURCE_KEY: "YQ=="})), "its content belongs into ConfigMap"),
        (stored(bytes(MAX_SOURCE_BYTES + 1)), "are allowed"),
        (stored(b"another archive"), "its content belongs into ConfigMap"),
    ],
)
def test_other_config_maps_are_refused(body: Any, why: str) -> None:
    with pytest.raises(SourceRefused, match=why):
        check_source(body, job(), NAME)


@dataclass
class ConfigMaps:
    """An API server with these ConfigMaps, by name, that counts requests."""

    stored: dict[str, Any] = field(default_factory=dict)
    requests: int = 0

    async def get(self, request: web.Request) -> web.Response:
        self.requests += 1
        body = self.stored.get(request.match_info["name"])
        return make_failure(404, "NotFound", "not found") if body is None else web.json_response(body)

    async def create(self, request: web.Request) -> web.Response:
        """Create the ConfigMap of the job's agents."""
        return web.json_response(await request.json(), status=201)


def app_of(server: ConfigMaps) -> web.Application:
    app = web.Application()
    app.router.add_get("/api/v1/namespaces/{namespace}/configmaps/{name}", server.get)
    app.router.add_post("/api/v1/namespaces/{namespace}/configmaps", server.create)
    return app


@asynccontextmanager
async def sources(server: ConfigMaps, clock: Callable[[], float], folder: Path) -> AsyncIterator[EditedSources]:
    async with api_client(app_of(server), folder) as client:
        yield EditedSources(client, clock)


def start(sha256: str) -> Command:
    return Command(1, UID, 2, CommandKind.START, source=EditedSource(sha256))


async def test_a_source_is_found_once_in_a_while_and_read_again_before_each_start(tmp_path: Path) -> None:
    server, now, job_state = ConfigMaps(), [100.0], JobState()
    async with sources(server, lambda: now[0], tmp_path) as edited:
        missing = await edited.find(job(), job_state, NAME)
        assert missing.problem == "it does not exist; run `muster rerun` again"
        server.stored[NAME] = stored()
        assert await edited.find(job(), job_state, NAME) == missing
        now[0] += SOURCE_SECONDS
        assert await edited.find(job(), job_state, NAME) == RequestedSource(NAME, SHA256)
        assert await edited.find(job(), job_state, NAME) == RequestedSource(NAME, SHA256)
        assert server.requests == 2

        command = await edited.add_source(job(), job_state, start(SHA256))
        assert command is not None
        assert command.source == EditedSource(SHA256, base64.b64encode(ARCHIVE).decode())
        del server.stored[NAME]
        assert await edited.add_source(job(), job_state, replace(start(SHA256), attempt=3)) is None
        assert job_state.source_problem is not None
        assert "ConfigMap " + NAME + " can't be used: it does not exist" in job_state.source_problem.message
        plain = Command(1, UID, 3, CommandKind.STOP)
        assert await edited.add_source(job(), job_state, plain) == plain
        assert job_state.source_problem is None


@pytest.mark.parametrize("name", [".", "..", "../../a/configmaps/x", "x?watch=1", "x" * 254, NAME + "0", "other", ""])
async def test_only_names_of_the_job_s_own_code_are_read(name: str, tmp_path: Path) -> None:
    server = ConfigMaps()
    async with sources(server, lambda: 0.0, tmp_path) as edited:
        assert (
            "does not belong to this job: `muster rerun` creates"
            in (await edited.find(job(), JobState(), name)).problem
        )
        forged = "/../secrets/abcd" + "0" * 48
        job_state = JobState()
        assert await edited.add_source(job(), job_state, start(forged)) is None
        assert job_state.source_problem is not None
    assert server.requests == 0


async def test_a_job_without_memory_for_its_code_waits_and_says_so(tmp_path: Path) -> None:
    server, now, source_limits = (
        ConfigMaps({NAME: stored()}),
        [T0],
        MemoryLimits(per_namespace=1000, total=20, guaranteed=0),
    )
    store, pods = RankStore(source_limits=source_limits), PodIndex(lambda _: None, lambda: now[0])
    store.register_job(JobShape(UID, 1, 2, T0))
    pods.expect(UID, "default")
    trainer = Container("trainer", "image:1", Running(T0))
    pods.add_created(PodView("digits-0-0", "default", "pod-0", UID, 0, 0, "Running", trainer), now[0])
    settings = PodSettings("cluster.local", "https://collector.muster-system.svc:8443", "muster-agent-0")
    assert source_limits.reserve("the code of another job", ObjectSize("other", 10))
    created = {"creation_timestamp": format_timestamp_milliseconds(T0)}
    current = job(nodes=1).model_copy(update={"metadata": job().metadata.model_copy(update=created)})
    async with api_client(app_of(server), tmp_path) as client:
        backend = KubernetesBackend(client, pods, store, settings, str, lambda: bytes(SEED_BYTES), lambda: now[0])
        sending = SendCommand((0,), start(SHA256))
        await backend.apply(current, [sending])
        assert (await backend.observe(current)).problem == NO_MEMORY
        source_limits.release("the code of another job")
        now[0] += SOURCE_SECONDS
        await backend.apply(current, [sending])
        assert (await backend.observe(current)).problem is None
    command = store.get_command(UID, 0, None)
    assert command is not None
    assert command.source == EditedSource(SHA256, base64.b64encode(ARCHIVE).decode())


async def test_code_that_an_attempt_waits_for_is_read_again_only_after_a_while(tmp_path: Path) -> None:
    server, now, job_state = ConfigMaps(), [100.0], JobState()
    async with sources(server, lambda: now[0], tmp_path) as edited:
        for _ in range(3):
            assert await edited.add_source(job(), job_state, start(SHA256)) is None
        assert server.requests == 1
        server.stored[NAME] = stored()
        now[0] += SOURCE_SECONDS
        assert await edited.add_source(job(), job_state, start(SHA256)) is not None
        assert job_state.source_problem is None
        # The store had no memory for it.
        assert await edited.add_source(job(), job_state, start(SHA256)) is None
        assert server.requests == 2
        assert await edited.add_source(job(), job_state, replace(start(SHA256), attempt=3)) is not None


async def test_code_with_another_hash_than_in_the_status_is_not_sent(tmp_path: Path) -> None:
    recorded = SHA256[:16] + "0" * 48
    async with sources(ConfigMaps({NAME: stored()}), lambda: 0.0, tmp_path) as edited:
        job_state = JobState()
        assert await edited.add_source(job(), job_state, start(recorded)) is None
        assert job_state.source_problem is not None
        assert "not the one in the status" in job_state.source_problem.message
