"""Requests to the API server: limits, timeouts, renewed credentials, and one kind of error."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import urlencode

import aiohttp

from muster.api.document import JSON
from muster.clients.kubernetes.access import Access, NoCluster, find
from muster.clients.kubernetes.adaptive_limit import AdaptiveLimit
from muster.clients.kubernetes.fair_slots import FairSlots
from muster.objects.kubernetes.answers import refusal
from muster.objects.kubernetes.errors import NO_ANSWER, ApiError

MAX_IN_FLIGHT = 64
"""Concurrent requests, without streams: the API server has its own fair queues, in which more would only wait.

Namespaces share them (`FairSlots`): a single one gets three quarters, and fewer while the API server is busy
(`AdaptiveLimit`).
"""

ANSWER_SECONDS = 20.0
"""The timeout of a response; for a stream, of its beginning."""

MAX_ANSWER_BYTES = 64 * 1024 * 1024
"""The limit for one object: 1.5 MiB in etcd unless its limit was raised, and up to six times that as JSON."""

MAX_REFUSAL_BYTES = 1024 * 1024
"""The limit for an error's body; beyond it, only the HTTP status counts."""


_TOO_MANY = (NO_ANSWER, HTTPStatus.TOO_MANY_REQUESTS)


class TooLong(ApiError):
    """The response exceeds the caller's limit; its data is dropped."""


def always() -> bool:
    """The default of `may_send`."""
    return True


@dataclass(frozen=True)
class Request:
    """A request. Empty values of `query` are omitted; `may_send` is called right before sending."""

    method: str
    path: str
    query: Mapping[str, str | int] = field(default_factory=dict)
    body: JSON = None
    content_type: str = "application/json"
    may_send: Callable[[], bool] = always
    accept: str = "application/json, */*"

    @property
    def target(self) -> str:
        """The path with its query."""
        query = urlencode({key: value for key, value in self.query.items() if value != ""})
        return f"{self.path}?{query}" if query else self.path

    @property
    def namespace(self) -> str:
        """The namespace of the request's object; "" if there is none."""
        _, is_there, rest = self.path.partition("/namespaces/")
        return rest.partition("/")[0] if is_there else ""

    @property
    def kind(self) -> str:
        """Requests of one kind take about as long: the verb, and the path without names."""
        _, is_there, rest = self.path.partition("/namespaces/")
        if not is_there:
            return f"{self.method} {self.path}"
        _, *resource = rest.split("/")
        return f"{self.method} {'/'.join((*resource[:1], *resource[2:]))}"


class Session:
    """Sends requests. Belongs to one event loop."""

    def __init__(self, access: Access, kubeconfig: str | None) -> None:
        self._access = access
        self._kubeconfig = kubeconfig
        self._outdated: list[Access] = []
        self._renewing = asyncio.Lock()
        self._limit = AdaptiveLimit(MAX_IN_FLIGHT)
        self._free = FairSlots(MAX_IN_FLIGHT, self._limit.of)

    @property
    def namespace(self) -> str:
        """The context's namespace."""
        return self._access.namespace

    async def close(self) -> None:
        """Close all connections; streams break."""
        for access in (self._access, *self._outdated):
            await access.close()

    async def text(self, request: Request, most: int = MAX_ANSWER_BYTES) -> bytes:
        """Return the response's body. Raises ApiError, `TooLong` if it has more than `most` bytes."""
        limit = aiohttp.ClientTimeout(total=ANSWER_SECONDS)
        try:
            async with (
                self._free.slot(request.namespace),
                self._measured(request),
                self._answer(request, limit) as response,
            ):
                result = await _body(response, most)
        finally:
            if self._free.is_idle(request.namespace):
                self._limit.forget(request.namespace)
        if result is None:
            raise TooLong(
                NO_ANSWER, "TooLong", f"the answer to {request.method} {request.path} is longer than {most} bytes"
            )
        return result

    async def stream(self, request: Request) -> AsyncGenerator[bytes, None]:
        """Yield the response's chunks, however long it takes. Raises ApiError, also if the stream is interrupted."""
        async with self._answer(request, aiohttp.ClientTimeout(total=None)) as response:
            async for chunk in response.content.iter_any():
                yield chunk

    @contextlib.asynccontextmanager
    async def _measured(self, request: Request) -> AsyncIterator[None]:
        """Adjust the limit of the request's namespace by its latency."""
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            yield
        except ApiError as error:
            # Refusals are too fast to compare.
            if error.status in _TOO_MANY:
                self._limit.unanswered(request.namespace)
            raise
        # The latency of a read depends on the size of its result.
        if request.method != "GET":
            self._limit.answered(request.namespace, request.kind, clock() - began, clock())

    @contextlib.asynccontextmanager
    async def _answer(self, request: Request, limit: aiohttp.ClientTimeout) -> AsyncIterator[aiohttp.ClientResponse]:
        # Cancellation passes; every other error means that the API server did not answer.
        try:
            response = await self._send(request, limit)
            try:
                yield response
            finally:
                response.release() if limit.total is not None else _abort(response)
        except TimeoutError as late:
            raise self._unanswered(request, f"within {ANSWER_SECONDS:.0f} s") from late
        except (aiohttp.ClientError, OSError) as broken:
            raise self._unanswered(request, f"({str(broken) or type(broken).__name__})") from broken

    async def _send(self, request: Request, limit: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        access = self._access
        try:
            return await _begin(access, request, limit)
        except ApiError as refused:
            if refused.status != HTTPStatus.UNAUTHORIZED:
                raise
            # A token from a plug-in or a file may have expired. The API server did not execute the request.
            return await _begin(await self._renewed(access, refused), request, limit)

    async def _renewed(self, used: Access, refused: ApiError) -> Access:
        async with self._renewing:
            if self._access is used:
                try:
                    self._access = await find(self._kubeconfig)
                except NoCluster as no_cluster:
                    raise refused from no_cluster
                # Other streams still use it.
                self._outdated.append(used)
            return self._access

    def _unanswered(self, request: Request, why: str) -> ApiError:
        server = self._access.url
        return ApiError(NO_ANSWER, "NoAnswer", f"no answer from {server} to {request.method} {request.path} {why}")


def _abort(stream: aiohttp.ClientResponse) -> None:
    """Abort a stream: a pooled connection would first read the rest of it."""
    # TLS would wait for the other side's close_notify, and keep the process from ending.
    if stream.connection is not None and stream.connection.transport is not None:
        stream.connection.transport.abort()
    stream.close()


async def _begin(access: Access, request: Request, limit: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
    headers = {"Content-Type": request.content_type, "Accept": request.accept}
    if not request.may_send():
        raise ApiError(NO_ANSWER, "NotLeading", f"{request.method} {request.path} was not sent: the Lease is not held")
    async with asyncio.timeout(ANSWER_SECONDS):
        response = await access.send(request.method, request.target, headers, request.body, limit)
        if response.ok:
            return response
        try:
            raise refusal(response.status, response.headers, await _body(response, MAX_REFUSAL_BYTES) or b"")
        finally:
            response.release()


async def _body(response: aiohttp.ClientResponse, most: int) -> bytes | None:
    """Read the response's body; None if it has more than `most` bytes."""
    result = bytearray()
    async for chunk in response.content.iter_any():
        result += chunk
        if len(result) > most:
            return None
    return bytes(result)
