"""The HTTPS server that kopf's admission is asked through: kopf's own holds any number of bodies of any length.

API servers show no certificate, so that every pod of the cluster may ask. Connections, bodies and processor time have
limits; past them the answer is an error, which the API server takes as it takes silence: it stores the resource, and
the operator looks at it as if there were no webhook.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import InitVar, dataclass, field
from http import HTTPStatus
from typing import Any

from aiohttp import web
from kopf import WebhookClientConfig

from muster.api.document import JSON
from muster.api.field_problems import FieldProblem
from muster.collector.door.strict_http import StrictConnection
from muster.collector.trust.certificate import ServingCertificate, server_context
from muster.controller.webhook.door import Caller, Door
from muster.controller.webhook.review import (
    KIND_OF_REVIEW,
    MAX_REVIEW_BYTES,
    Review,
    allowed,
    read_review,
    refused_status,
)
from muster.controller.webhook.shares import WebhookShares
from muster.objects.kubernetes.json_parts import Malformed

PATH = "/jobs"
"""Where the ValidatingWebhookConfiguration sends reviews of jobs."""

MAX_BYTES_IN_FLIGHT = 8 * MAX_REVIEW_BYTES
MAX_BYTES_OF_ADDRESS = 2 * MAX_REVIEW_BYTES
"""Bodies that are being read or judged: all, and those of one address."""

BODY_SECONDS = 2.0
"""An API server sends 2 MiB in milliseconds, and waits 3 s for the answer."""

IDLE_SECONDS = 60.0

MAX_FIELD_BYTES = 4096

LINGER_SECONDS = 1.0
"""How long the rest of a refused body is read and thrown away, so that the sender gets to see the answer."""

BUSY = "muster had no time to look at this job before it was stored: see its condition Accepted"

Ask = Callable[[Any], Awaitable[Any]]
"""kopf's way from a review to an answer."""

_problems: ContextVar[list[FieldProblem]] = ContextVar("problems")


def object_to(problems: tuple[FieldProblem, ...]) -> None:
    """Say, from within kopf's handler, what speaks against the resource under review: one by one, for the answer."""
    _problems.get([]).extend(problems)


@dataclass
class WebhookServer:
    """What kopf calls `settings.admission.server`."""

    listening: socket.socket
    certificate: InitVar[ServingCertificate]
    shares: WebhookShares = field(default_factory=lambda: WebhookShares(time.monotonic))
    _held: dict[str, int] = field(default_factory=dict)

    def __post_init__(self, certificate: ServingCertificate) -> None:
        self._context = server_context(certificate)

    def use(self, certificate: ServingCertificate) -> None:
        """Show this certificate on new connections, from any thread; those that are open stay."""
        self._context = server_context(certificate)

    async def __call__(self, ask: Ask) -> AsyncIterator[WebhookClientConfig]:
        """Serve while kopf iterates. The configuration is empty: the chart gives the API server the address."""

        async def handle(request: web.BaseRequest) -> web.StreamResponse:
            return await self._answer(request, ask)

        server = _Server(handle)
        door = Door(self.listening, lambda: self._context, server.connection)
        server.door = door
        serving = asyncio.create_task(door.run(), name="webhook")
        try:
            yield WebhookClientConfig()
            await serving
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)

    async def _answer(self, request: web.BaseRequest, ask: Ask) -> web.StreamResponse:
        size, address = request.content_length or 0, request.remote or ""
        fault = _fault(request)
        if fault is None and not (self._has_room(address, size) and self.shares.may_ask(address)):
            fault = HTTPStatus.SERVICE_UNAVAILABLE
        if fault is not None:
            return web.Response(status=fault)
        with self._holding(address, size):
            try:
                async with asyncio.timeout(BODY_SECONDS):
                    body = await request.content.readexactly(size)
            except (TimeoutError, web.RequestPayloadError, asyncio.IncompleteReadError):
                return web.Response(status=HTTPStatus.REQUEST_TIMEOUT)
            return await self._judge(address, body, ask)

    async def _judge(self, address: str, body: bytes, ask: Ask) -> web.StreamResponse:
        began = time.thread_time()
        namespace = ""
        try:
            review = read_review(body)
            namespace = review.namespace
            if not self.shares.may_have_looked_at(namespace):
                return web.json_response(allowed(review, BUSY))
            return web.json_response(await _asked(review, ask))
        except Malformed as problem:
            return web.Response(status=HTTPStatus.BAD_REQUEST, text=f"{problem}\n")
        finally:
            self.shares.charge(address, namespace, time.thread_time() - began)

    def _has_room(self, address: str, size: int) -> bool:
        own, all_of_them = self._held.get(address, 0), sum(self._held.values())
        return own + size <= MAX_BYTES_OF_ADDRESS and all_of_them + size <= MAX_BYTES_IN_FLIGHT

    @contextmanager
    def _holding(self, address: str, size: int) -> Iterator[None]:
        self._held[address] = self._held.get(address, 0) + size
        try:
            yield
        finally:
            self._held[address] -= size
            if not self._held[address]:
                del self._held[address]


def _fault(request: web.BaseRequest) -> HTTPStatus | None:
    """What is wrong with a request before its body is read."""
    if request.path != PATH:
        return HTTPStatus.NOT_FOUND
    if request.method != "POST":
        return HTTPStatus.METHOD_NOT_ALLOWED
    # what a few bytes may inflate to has no bound
    if request.content_length is None or request.headers.get("Content-Encoding", "identity") != "identity":
        return HTTPStatus.LENGTH_REQUIRED
    return HTTPStatus.REQUEST_ENTITY_TOO_LARGE if request.content_length > MAX_REVIEW_BYTES else None


async def _asked(review: Review, ask: Ask) -> dict[str, Any]:
    problems: list[FieldProblem] = []
    token = _problems.set(problems)
    try:
        answer: dict[str, Any] = await ask({**KIND_OF_REVIEW, "request": review.fields})
    finally:
        _problems.reset(token)
    if problems:
        status: JSON = dict(refused_status(review, problems))
        answer["response"]["status"] = status
    return answer


class _Server(web.Server):
    """aiohttp's server, whose connections tell the door that they are closed."""

    door: Door

    def connection(self, caller: Caller) -> _Connection:
        return _Connection(self, caller)


class _Connection(StrictConnection):
    """One connection of an API server, or of a stranger."""

    __slots__ = ("_caller", "_door")

    def __init__(self, server: _Server, caller: Caller) -> None:
        super().__init__(
            server,
            idle_seconds=IDLE_SECONDS,
            linger_seconds=LINGER_SECONDS,
            max_field_bytes=MAX_FIELD_BYTES,
        )
        self._caller = caller
        self._door = server.door

    def connection_lost(self, exc: BaseException | None) -> None:
        self._door.leave(self._caller)
        super().connection_lost(exc)
