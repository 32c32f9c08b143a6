"""The HTTPS server for kopf's admission webhook. kopf's own server limits neither the number nor the size of bodies.

API servers send no client certificate, so any pod of the cluster may connect. This server limits connections, bodies
and processor time, and responds with an error beyond a limit. Then the API server stores the resource without a review,
as after a timeout, and the operator validates it later.
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
from muster.collector.server.strict_http import StrictConnection
from muster.collector.trust.certificate import ServingCertificate, make_server_context
from muster.controller.webhook.connections import AcceptedConnection, WebhookConnections
from muster.controller.webhook.cpu_time import ChargedCoroutine, WebhookCpuTime
from muster.controller.webhook.review import (
    MAX_REVIEW_BYTES,
    REVIEW_TYPE,
    Review,
    ReviewOrigin,
    make_busy_response,
    make_denial_status,
    make_unreviewed_response,
    read_origin,
    read_review,
)
from muster.controller.webhook.template_merger import TemplateMerger
from muster.objects.kubernetes.json_parts import MalformedJson

PATH = "/jobs"
"""The path in the ValidatingWebhookConfiguration."""

TEMPLATE_PATH = "/job-templates"
"""The path in the MutatingWebhookConfiguration."""

MAX_BYTES_IN_FLIGHT = 8 * MAX_REVIEW_BYTES
MAX_BYTES_PER_ADDRESS = 2 * MAX_REVIEW_BYTES
"""The limits for the bodies of all current requests, and for those from one address."""

SMALL_BYTES = 64 * 1024
"""Bodies up to this size always have room: 2 MiB for the maximum number of connections.

Otherwise a namespace that sends large jobs would keep the API server from sending the jobs of others.
"""

BODY_SECONDS = 2.0
"""The timeout for a body. An API server sends 2 MiB in milliseconds, and waits 3 s for the response."""

IDLE_SECONDS = 60.0

MAX_FIELD_BYTES = 4096

LINGER_SECONDS = 1.0
"""The server continues to read a refused body this long, so that the client receives the response."""

BUSY_WARNING = "muster was too busy to review this job before it was stored: see its condition Accepted"

AdmissionHandler = Callable[[Any], Awaitable[Any]]
"""kopf's function that turns a review into a response."""

_problems: ContextVar[list[FieldProblem]] = ContextVar("problems")


def add_problems(problems: tuple[FieldProblem, ...]) -> None:
    """Add the resource's problems to the response. Called from kopf's handler."""
    _problems.get([]).extend(problems)


@dataclass
class WebhookServer:
    """The admission server for kopf's settings."""

    listening_socket: socket.socket
    certificate: InitVar[ServingCertificate]
    merger: TemplateMerger
    cpu_time: WebhookCpuTime = field(default_factory=lambda: WebhookCpuTime(time.monotonic))
    _reserved: dict[str, int] = field(default_factory=dict)

    def __post_init__(self, certificate: ServingCertificate) -> None:
        self._context = make_server_context(certificate)

    def use_certificate(self, certificate: ServingCertificate) -> None:
        """Use this certificate for new connections; any thread may call this."""
        self._context = make_server_context(certificate)

    async def __call__(self, handler: AdmissionHandler) -> AsyncIterator[WebhookClientConfig]:
        """Serve while kopf iterates. The client configuration is empty, because the chart registers the webhook."""

        async def handle(request: web.BaseRequest) -> web.StreamResponse:
            with _mark_answering(request):
                return await self._handle(request, handler)

        server = _Server(handle)
        connections = WebhookConnections(self.listening_socket, lambda: self._context, server.make_connection)
        server.webhook_connections = connections
        serve_task = asyncio.create_task(connections.run(), name="webhook")
        try:
            yield WebhookClientConfig()
            await serve_task
        finally:
            serve_task.cancel()
            await asyncio.gather(serve_task, return_exceptions=True)

    async def _handle(self, request: web.BaseRequest, handler: AdmissionHandler) -> web.StreamResponse:
        size, address = request.content_length or 0, request.remote or ""
        error = _find_error_status(request)
        if error is None and not (self._has_room(address, size) and self.cpu_time.may_read(address)):
            error = HTTPStatus.SERVICE_UNAVAILABLE
        if error is not None:
            return web.Response(status=error)
        with self._reserve(address, size):
            try:
                async with asyncio.timeout(BODY_SECONDS):
                    body = await request.content.readexactly(size)
            except (TimeoutError, web.RequestPayloadError, asyncio.IncompleteReadError):
                return web.Response(status=HTTPStatus.REQUEST_TIMEOUT)
            return await self._review(address, body, handler if request.path == PATH else None)

    async def _review(self, address: str, body: bytes, handler: AdmissionHandler | None) -> web.StreamResponse:
        """Answer a review by kopf's `handler`; None: merge the job's template."""
        started_at = time.thread_time()
        namespace = ""
        try:
            origin = read_origin(body)
            namespace = origin.namespace
            if not self.cpu_time.may_review(namespace):
                return web.json_response(_make_busy_response(origin, handler))
            review = read_review(body)
        except MalformedJson as problem:
            return web.Response(status=HTTPStatus.BAD_REQUEST, text=f"{problem}\n")
        finally:
            self.cpu_time.charge(address, namespace, time.thread_time() - started_at)
        return await ChargedCoroutine(
            self._answer(review, handler), lambda seconds: self.cpu_time.charge(address, namespace, seconds)
        )

    async def _answer(self, review: Review, handler: AdmissionHandler | None) -> web.StreamResponse:
        answer = self.merger.answer(review) if handler is None else _call_kopf(review, handler)
        return web.json_response(await answer)

    def _has_room(self, address: str, size: int) -> bool:
        # Large bodies must not keep out others: the limit of connections is enough for the small ones.
        if size <= SMALL_BYTES:
            return True
        reserved, total = self._reserved.get(address, 0), sum(self._reserved.values())
        return reserved + size <= MAX_BYTES_PER_ADDRESS and total + size <= MAX_BYTES_IN_FLIGHT

    @contextmanager
    def _reserve(self, address: str, size: int) -> Iterator[None]:
        self._reserved[address] = self._reserved.get(address, 0) + size
        try:
            yield
        finally:
            self._reserved[address] -= size
            if not self._reserved[address]:
                del self._reserved[address]


def _find_error_status(request: web.BaseRequest) -> HTTPStatus | None:
    """Return the error that is visible before the body is read, if any."""
    if request.path not in (PATH, TEMPLATE_PATH):
        return HTTPStatus.NOT_FOUND
    if request.method != "POST":
        return HTTPStatus.METHOD_NOT_ALLOWED
    # a compressed body may inflate without bound
    if request.content_length is None or request.headers.get("Content-Encoding", "identity") != "identity":
        return HTTPStatus.LENGTH_REQUIRED
    return HTTPStatus.REQUEST_ENTITY_TOO_LARGE if request.content_length > MAX_REVIEW_BYTES else None


def _make_busy_response(origin: ReviewOrigin, handler: AdmissionHandler | None) -> dict[str, JSON]:
    # If it were allowed, the API server could store a job without the values of its template.
    return make_busy_response(origin) if handler is None else make_unreviewed_response(origin, BUSY_WARNING)


async def _call_kopf(review: Review, handler: AdmissionHandler) -> dict[str, Any]:
    problems: list[FieldProblem] = []
    token = _problems.set(problems)
    try:
        response: dict[str, Any] = await handler({**REVIEW_TYPE, "request": review.fields})
    finally:
        _problems.reset(token)
    if problems:
        status: JSON = dict(make_denial_status(review, problems))
        response["response"]["status"] = status
    return response


@contextmanager
def _mark_answering(request: web.BaseRequest) -> Iterator[None]:
    client = request.protocol.client if isinstance(request.protocol, _Connection) else AcceptedConnection("")
    client.is_answering = True
    try:
        yield
    finally:
        client.is_answering = False


class _Server(web.Server):
    """An aiohttp server whose connections report when they close."""

    webhook_connections: WebhookConnections

    def make_connection(self, client: AcceptedConnection) -> _Connection:
        return _Connection(self, client)


class _Connection(StrictConnection):
    """A connection of an API server, or of any other client."""

    __slots__ = ("_connections", "client")

    def __init__(self, server: _Server, client: AcceptedConnection) -> None:
        super().__init__(
            server,
            idle_seconds=IDLE_SECONDS,
            linger_seconds=LINGER_SECONDS,
            max_field_bytes=MAX_FIELD_BYTES,
        )
        self.client = client
        self._connections = server.webhook_connections

    def connection_lost(self, exc: BaseException | None) -> None:
        self._connections.remove(self.client)
        super().connection_lost(exc)
