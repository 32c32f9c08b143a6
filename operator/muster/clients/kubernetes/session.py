"""Send requests to the API server. Limits, timeouts, renewed credentials and errors are handled here."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import urlencode

import aiohttp

from muster.api.document import JSON
from muster.clients.kubernetes.access import ClusterAccess, NoCluster, find_cluster
from muster.clients.kubernetes.adaptive_limit import AdaptiveLimit
from muster.clients.kubernetes.fair_slots import FairSlots, creation_order
from muster.clients.kubernetes.request_labels import find_resource, find_verb
from muster.clients.kubernetes.request_settings import MAX_ERROR_BYTES, MAX_RESPONSE_BYTES, RESPONSE_SECONDS
from muster.clients.request_counter import RequestCounter
from muster.objects.kubernetes.errors import NO_RESPONSE, ApiError
from muster.objects.kubernetes.responses import build_response_error

MAX_IN_FLIGHT = 64
"""The maximum number of concurrent requests, without streams. More would only wait in the API server's fair queues.

`FairSlots` shares them among namespaces: a namespace gets at most three quarters of them. `AdaptiveLimit` reduces its
number while the API server is overloaded.
"""


_TOO_MANY = (NO_RESPONSE, HTTPStatus.TOO_MANY_REQUESTS)


class ResponseTooLong(ApiError):
    """The response exceeds the caller's limit."""


def always_true() -> bool:
    """Allow every request: the default of `may_send`."""
    return True


@dataclass(frozen=True)
class Request:
    """A request. Empty values of `query` are omitted; `may_send` is called right before sending."""

    method: str
    path: str
    query: Mapping[str, str | int] = field(default_factory=dict)
    body: JSON = None
    content_type: str = "application/json"
    may_send: Callable[[], bool] = always_true
    accept: str = "application/json, */*"

    @property
    def target(self) -> str:
        """The path with its query."""
        query = urlencode({key: value for key, value in self.query.items() if value != ""})
        return f"{self.path}?{query}" if query else self.path

    @property
    def namespace(self) -> str:
        """The namespace of the request's object, or "" for a cluster-scoped object."""
        _, separator, suffix = self.path.partition("/namespaces/")
        return suffix.partition("/")[0] if separator else ""

    @property
    def kind(self) -> str:
        """The verb and the path without names. Requests of one kind have similar latencies."""
        _, separator, suffix = self.path.partition("/namespaces/")
        if not separator:
            return f"{self.method} {self.path}"
        _, *resource = suffix.split("/")
        return f"{self.method} {'/'.join((*resource[:1], *resource[2:]))}"


class Session:
    """Sends requests. Only one event loop may use this. `requests` counts them by verb, resource and code."""

    def __init__(self, access: ClusterAccess, kubeconfig: str | None, context: str | None = None) -> None:
        self._access = access
        self.request_counter = RequestCounter()
        self._kubeconfig = kubeconfig
        self._context = context
        self._outdated: list[ClusterAccess] = []
        self._renewal_lock = asyncio.Lock()
        self._limit = AdaptiveLimit(MAX_IN_FLIGHT)
        self._slots = FairSlots(MAX_IN_FLIGHT, self._limit.get_limit)

    @property
    def namespace(self) -> str:
        """The context's namespace."""
        return self._access.namespace

    def has_waiting_requests(self, namespace: str) -> bool:
        """Whether requests of the namespace wait until others of it have ended."""
        return self._slots.has_waiting(namespace)

    async def close(self) -> None:
        """Close all connections and streams."""
        for access in (self._access, *self._outdated):
            await access.close()

    async def fetch_text(self, request: Request, max_bytes: int = MAX_RESPONSE_BYTES) -> bytes:
        """Return the response's body. Raises ApiError, `ResponseTooLong` if it has more than `max_bytes` bytes."""
        client_timeout = aiohttp.ClientTimeout(total=RESPONSE_SECONDS)
        # Statuses and deletions of later jobs don't wait until the pods of a large earlier job exist.
        order = creation_order.get() if request.method == "POST" else 0
        try:
            async with (
                self._slots.slot(request.namespace, order),
                self._measure_latency(request),
                self._fetch_response(request, client_timeout) as response,
            ):
                result = await _read_body(response, max_bytes)
        finally:
            if self._slots.is_idle(request.namespace):
                self._limit.forget(request.namespace)
        if result is None:
            raise ResponseTooLong(
                NO_RESPONSE,
                "TooLong",
                f"the answer to {request.method} {request.path} is longer than {max_bytes} bytes",
            )
        return result

    async def stream(self, request: Request) -> AsyncGenerator[bytes, None]:
        """Yield the response's chunks, without a timeout. Raises ApiError, also if the stream is interrupted."""
        async with self._fetch_response(request, aiohttp.ClientTimeout(total=None)) as response:
            async for chunk in response.content.iter_any():
                yield chunk

    @contextlib.asynccontextmanager
    async def _measure_latency(self, request: Request) -> AsyncIterator[None]:
        """Adjust the limit of the request's namespace by the request's latency."""
        clock = asyncio.get_running_loop().time
        started_at = clock()
        try:
            yield
        except ApiError as error:
            # Refused requests are so fast that their latency tells nothing.
            if error.status in _TOO_MANY:
                self._limit.record_failure(request.namespace)
            raise
        # The latency of a read depends on the size of its result.
        if request.method != "GET":
            self._limit.record_latency(request.namespace, request.kind, clock() - started_at, clock())

    @contextlib.asynccontextmanager
    async def _fetch_response(
        self, request: Request, client_timeout: aiohttp.ClientTimeout
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        # Every exception except cancellation means that the API server did not respond.
        try:
            response = await self._send(request, client_timeout)
            try:
                yield response
            finally:
                response.release() if client_timeout.total is not None else _abort(response)
        except TimeoutError as error:
            raise self._make_no_response_error(request, f"within {RESPONSE_SECONDS:.0f} s") from error
        except (aiohttp.ClientError, OSError) as error:
            raise self._make_no_response_error(request, f"({str(error) or type(error).__name__})") from error

    async def _send(self, request: Request, client_timeout: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        access = self._access
        try:
            return await self._send_once(access, request, client_timeout)
        except ApiError as error:
            if error.status != HTTPStatus.UNAUTHORIZED:
                raise
            # The token of a plug-in or a file may have expired: read it again, and repeat the request.
            return await self._send_once(await self._renew_access(access, error), request, client_timeout)

    async def _send_once(
        self, access: ClusterAccess, request: Request, client_timeout: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        if not request.may_send():
            raise ApiError(
                NO_RESPONSE, "NotLeading", f"{request.method} {request.path} was not sent: the Lease is not held"
            )
        try:
            response = await _send_request(access, request, client_timeout)
        except ApiError as error:
            self._count(request, error.status)
            raise
        except (TimeoutError, aiohttp.ClientError, OSError):
            self._count(request, NO_RESPONSE)
            raise
        self._count(request, response.status)
        return response

    def _count(self, request: Request, status: int) -> None:
        verb = find_verb(request.method, request.path, request.query)
        self.request_counter.count(verb, find_resource(request.path), status)

    async def _renew_access(self, used_access: ClusterAccess, refusal_error: ApiError) -> ClusterAccess:
        async with self._renewal_lock:
            if self._access is used_access:
                try:
                    self._access = await find_cluster(self._kubeconfig, self._context)
                except NoCluster as no_cluster:
                    raise refusal_error from no_cluster
                # Streams may still use the old connections.
                self._outdated.append(used_access)
            return self._access

    def _make_no_response_error(self, request: Request, reason: str) -> ApiError:
        server = self._access.url
        return ApiError(NO_RESPONSE, "NoAnswer", f"no answer from {server} to {request.method} {request.path} {reason}")


def _abort(stream: aiohttp.ClientResponse) -> None:
    """Abort a stream, without reading its remaining data."""
    # TLS would wait for the peer's close_notify, which would delay the end of the process.
    if stream.connection is not None and stream.connection.transport is not None:
        stream.connection.transport.abort()
    stream.close()


async def _send_request(
    access: ClusterAccess, request: Request, client_timeout: aiohttp.ClientTimeout
) -> aiohttp.ClientResponse:
    headers = {"Content-Type": request.content_type, "Accept": request.accept}
    async with asyncio.timeout(RESPONSE_SECONDS):
        response = await access.send(request.method, request.target, headers, request.body, client_timeout)
        if response.ok:
            return response
        try:
            raise build_response_error(
                response.status, response.headers, await _read_body(response, MAX_ERROR_BYTES) or b""
            )
        finally:
            response.release()


async def _read_body(response: aiohttp.ClientResponse, max_bytes: int) -> bytes | None:
    """Read the response's body; None if it has more than `max_bytes` bytes."""
    result = bytearray()
    async for chunk in response.content.iter_any():
        result += chunk
        if len(result) > max_bytes:
            return None
    return bytes(result)
