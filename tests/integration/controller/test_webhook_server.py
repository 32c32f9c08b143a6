"""The webhook's server and its clients: API servers, and any pod of the cluster."""

import asyncio
import base64
import io
import json
import socket
import ssl
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import pytest

from muster.api.field_problems import FieldProblem
from muster.api.spec.template_ref import TemplateRef
from muster.collector.trust.certificate import ServingCertificate, issue_certificate
from muster.controller.webhook import server
from muster.controller.webhook.connections import MAX_CONNECTIONS, open_listening_socket
from muster.controller.webhook.cpu_time import NAMESPACE_LIMIT, TOTAL_LIMIT, WebhookCpuTime
from muster.controller.webhook.review import MAX_REVIEW_BYTES
from muster.controller.webhook.server import BUSY_WARNING, PATH, TEMPLATE_PATH, WebhookServer, add_problems
from muster.controller.webhook.template_merger import TemplateMerger
from muster.objects.kubernetes.kinds import Object

API_SERVER = "127.0.0.1"
POD = "127.0.0.2"
REVIEW = {
    "kind": "AdmissionReview",
    "request": {
        "uid": "u",
        "namespace": "team",
        "name": "digits",
        "operation": "CREATE",
        "resource": {"group": "muster.dev", "version": "v1alpha1", "resource": "distributedtrainingjobs"},
        "object": {"metadata": {"name": "digits"}, "spec": {}},
        "oldObject": None,
    },
}


@dataclass
class Site:
    """A server that answers as kopf does, and its address."""

    certificate: ServingCertificate
    now: float = 0.0
    refuses: bool = False
    api_answers: asyncio.Event | None = None
    reads: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))
    asked: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.listening_socket = open_listening_socket("0.0.0.0", 0)  # noqa: S104 - the loopback has many addresses
        self.port = self.listening_socket.getsockname()[1]
        self.cpu_time = WebhookCpuTime(lambda: self.now)
        self.server = WebhookServer(
            self.listening_socket, self.certificate, TemplateMerger(self.read_template), self.cpu_time
        )

    async def ask(self, request: Any) -> Any:
        self.asked.append(request)
        if self.refuses:
            add_problems((FieldProblem("spec.nodes", "found 0"), FieldProblem("spec.image", "missing")))
        return {"response": {"uid": request["request"]["uid"], "allowed": not self.refuses}}

    async def read_template(self, reference: TemplateRef, namespace: str) -> Object:
        self.asked.append((reference.name, namespace))
        self.reads.release()
        if self.api_answers is not None:
            await self.api_answers.wait()
        return {
            "apiVersion": "muster.dev/v1alpha1",
            "kind": reference.kind,
            "metadata": {"name": reference.name},
            "spec": {"launcher": {"direct": {}}},
        }

    async def serve(self) -> None:
        async for _ in self.server(self.ask):
            pass

    def session(self) -> aiohttp.ClientSession:
        """Return a connection like the API server's: from its address, with the authority as the only trusted one."""
        trust = ssl.create_default_context(cadata=self.certificate.authority)
        return aiohttp.ClientSession(
            f"https://{API_SERVER}:{self.port}",
            connector=aiohttp.TCPConnector(ssl=trust, local_addr=(API_SERVER, 0)),
            timeout=aiohttp.ClientTimeout(total=20),
        )

    def knock(self) -> socket.socket:
        """Return a pod's connection that sends nothing."""
        return socket.create_connection((API_SERVER, self.port), source_address=(POD, 0), timeout=20)

    async def knock_with_tls(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Return a pod's connection after the TLS handshake."""
        trust = ssl.create_default_context(cadata=self.certificate.authority)
        return await asyncio.open_connection(API_SERVER, self.port, ssl=trust, local_addr=(POD, 0))


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    made = Site(issue_certificate([API_SERVER], time.time(), 3600.0))
    serving = asyncio.create_task(made.serve())
    yield made
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)
    made.listening_socket.close()


async def test_a_review_gets_its_answer(site: Site) -> None:
    async with site.session() as session:
        async with session.post(PATH, json=REVIEW) as answer:
            assert await answer.json() == {"response": {"uid": "u", "allowed": True}}
        site.refuses = True
        async with session.post(PATH, json=REVIEW) as answer:
            response = (await answer.json())["response"]
    assert site.asked[0]["request"]["userInfo"] == {}
    assert response["allowed"] is False
    assert response["status"]["message"] == "spec.nodes: found 0; spec.image: missing"
    assert [cause["field"] for cause in response["status"]["details"]["causes"]] == ["spec.nodes", "spec.image"]


async def test_the_other_path_merges_the_template_of_the_job(site: Site) -> None:
    job = {
        "apiVersion": "muster.dev/v1alpha1",
        "kind": "DistributedTrainingJob",
        "metadata": {"name": "digits"},
        "spec": {"templateRef": {"name": "large"}, "command": ["true"]},
    }
    async with site.session() as session:
        request: Any = REVIEW["request"]
        review = {**REVIEW, "request": {**request, "object": job}}
        async with session.post(TEMPLATE_PATH, json=review) as answer:
            response = (await answer.json())["response"]
    assert site.asked == [("large", "team")]
    assert response["allowed"] is True
    assert json.loads(base64.b64decode(response["patch"]))[0]["value"]["launcher"] == {"direct": {}}


def encode_review_with_template(namespace: str, padding: str = "") -> io.BytesIO:
    job = {
        "apiVersion": "muster.dev/v1alpha1",
        "kind": "DistributedTrainingJob",
        "metadata": {"name": "digits", "annotations": {"a": padding}},
        "spec": {"templateRef": {"name": "large"}, "command": ["true"]},
    }
    request: Any = REVIEW["request"]
    review = {**REVIEW, "request": {**request, "namespace": namespace, "object": job}}
    return io.BytesIO(json.dumps(review).encode())


async def test_reviews_that_wait_at_the_same_time_pay_only_for_their_own_work(site: Site) -> None:
    site.api_answers = asyncio.Event()
    async with site.session() as session:
        waiting = []
        for namespace in ("quiet", *["busy"] * 10):
            post = session.post(TEMPLATE_PATH, data=encode_review_with_template(namespace))
            waiting.append(asyncio.ensure_future(post))
            await site.reads.acquire()
        burn_until = time.thread_time() + 0.2
        while time.thread_time() < burn_until:
            pass
        site.api_answers.set()
        for answer in await asyncio.gather(*waiting):
            assert (await answer.json())["response"]["allowed"] is True
    spent = [NAMESPACE_LIMIT.burst - site.cpu_time._namespaces.get_balance(name, 0.0) for name in ("quiet", "busy")]
    assert all(0.0 < seconds < 0.1 for seconds in spent), spent


async def test_a_namespace_beyond_its_limit_costs_little_and_gets_no_job_without_its_template(site: Site) -> None:
    site.cpu_time.charge(API_SERVER, "team", NAMESPACE_LIMIT.burst)
    before = site.cpu_time._total.get_balance("", 0.0)
    async with site.session() as session:
        for _ in range(5):
            large = encode_review_with_template("team", "x" * 1_900_000)
            async with session.post(TEMPLATE_PATH, data=large) as answer:
                response = (await answer.json())["response"]
            assert (response["allowed"], response["status"]["code"]) == (False, 429)
            assert "namespace team" in response["status"]["message"]
        async with session.post(TEMPLATE_PATH, data=encode_review_with_template("other")) as answer:
            assert (await answer.json())["response"]["allowed"] is True
    assert before - site.cpu_time._total.get_balance("", 0.0) < 0.1
    assert site.asked == [("large", "other")]


async def test_large_reviews_of_an_api_server_leave_room_for_small_ones(site: Site) -> None:
    site.api_answers = asyncio.Event()
    padding = "x" * (MAX_REVIEW_BYTES - 1000)
    async with site.session() as session:
        waiting = []
        for _ in range(2):
            post = session.post(TEMPLATE_PATH, data=encode_review_with_template("team", padding))
            waiting.append(asyncio.ensure_future(post))
            await site.reads.acquire()
        async with session.post(TEMPLATE_PATH, data=encode_review_with_template("team", padding)) as answer:
            assert answer.status == 503
        async with session.post(PATH, json=REVIEW) as answer:
            assert answer.status == 200
        site.api_answers.set()
        assert [answer.status for answer in await asyncio.gather(*waiting)] == [200, 200]


async def test_a_review_is_answered_while_its_api_server_opens_more_connections(site: Site) -> None:
    site.api_answers = asyncio.Event()
    trust = ssl.create_default_context(cadata=site.certificate.authority)
    idle = []
    async with site.session() as session:
        review = asyncio.ensure_future(session.post(TEMPLATE_PATH, data=encode_review_with_template("team")))
        await site.reads.acquire()
        for _ in range(MAX_CONNECTIONS + 1):
            opened = asyncio.open_connection(API_SERVER, site.port, ssl=trust, local_addr=(API_SERVER, 0))
            idle.append((await opened)[1])
        site.api_answers.set()
        assert (await review).status == 200
    for writer in idle:
        writer.transport.abort()


async def test_what_is_no_review_is_not_judged(site: Site) -> None:
    async with site.session() as session:
        tries = {
            "another path": (await session.post("/", json=REVIEW), 404),
            "another method": (await session.get(PATH), 405),
            "no review": (await session.post(PATH, data=b"{}"), 400),
            "a deep one": (await session.post(PATH, data=b"[" * 1_000_000), 400),
            "too long": (await session.post(PATH, data=io.BytesIO(b" " * (MAX_REVIEW_BYTES + 1))), 413),
        }
        for what, (answer, status) in tries.items():
            assert answer.status == status, what
        async with session.post(PATH, json=REVIEW) as answer:
            assert answer.status == 200
    assert len(site.asked) == 1


async def test_no_length_and_no_known_encoding_is_not_read(site: Site) -> None:
    async def parts() -> AsyncIterator[bytes]:
        yield b"{}"

    async with site.session() as session:
        async with session.post(PATH, data=parts()) as answer:
            assert answer.status == 411
        async with session.post(PATH, data=b"{}", headers={"Content-Encoding": "gzip"}) as answer:
            assert answer.status == 411


async def test_connections_that_are_held_open_keep_no_api_server_out(site: Site) -> None:
    silent = [await asyncio.to_thread(site.knock) for _ in range(3 * MAX_CONNECTIONS)]
    open_ones = [await site.knock_with_tls() for _ in range(MAX_CONNECTIONS)]
    try:
        async with site.session() as session:
            for _ in range(3):
                async with session.post(PATH, json=REVIEW) as answer:
                    assert answer.status == 200
                silent += [await asyncio.to_thread(site.knock) for _ in range(MAX_CONNECTIONS)]
    finally:
        for connection in silent:
            connection.close()
        for _, writer in open_ones:
            writer.transport.abort()


async def test_bodies_that_never_come_hold_no_room_for_long(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "BODY_SECONDS", 0.3)
    head = f"POST {PATH} HTTP/1.1\r\nHost: a\r\nContent-Length: {MAX_REVIEW_BYTES}\r\n\r\n".encode()
    connections = [await site.knock_with_tls() for _ in range(4)]
    for _, writer in connections:
        writer.write(head)
    first = [(await reader.readline()).split()[1] for reader, _ in connections]
    # The address has two slots; the server waits for these as long as for any body.
    assert sorted(first) == [b"408", b"408", b"503", b"503"]
    async with site.session() as session, session.post(PATH, json=REVIEW) as answer:
        assert answer.status == 200
    for _, writer in connections:
        writer.transport.abort()


async def test_who_used_up_the_processor_time_is_not_looked_at(site: Site) -> None:
    site.cpu_time.charge(POD, "team", NAMESPACE_LIMIT.burst)
    async with site.session() as session:
        async with session.post(PATH, json=REVIEW) as answer:
            response = (await answer.json())["response"]
        assert response == {"uid": "u", "allowed": True, "warnings": [BUSY_WARNING]}
        assert site.asked == []
        other = json.loads(json.dumps(REVIEW).replace("team", "other"))
        async with session.post(PATH, json=other) as answer:
            assert answer.status == 200
        assert len(site.asked) == 1
        site.cpu_time.charge(POD, "", TOTAL_LIMIT.burst)
        async with session.post(PATH, json=REVIEW) as answer:
            assert answer.status == 503
        site.now += 60.0
        async with session.post(PATH, json=REVIEW) as answer:
            assert "warnings" not in (await answer.json())["response"]


async def test_a_new_certificate_is_shown_to_new_connections(site: Site) -> None:
    async with site.session() as before:
        async with before.post(PATH, json=REVIEW) as answer:
            assert answer.status == 200
        site.certificate = issue_certificate([API_SERVER], time.time(), 3600.0)
        site.server.use_certificate(site.certificate)
        async with site.session() as after, after.post(PATH, json=REVIEW) as answer:
            assert answer.status == 200
        async with before.post(PATH, json=REVIEW) as answer:
            assert answer.status == 200
