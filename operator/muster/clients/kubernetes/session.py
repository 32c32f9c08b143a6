"""Requests to the API server: limits of number and time, credentials that expire, and errors of one kind."""

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
"""Requests at once, streams aside: the API server shares itself out fairly, and more would only queue there.

Namespaces share them (`FairSlots`): one alone gets three quarters, and fewer while the API server is busy
(`AdaptiveLimit`).
"""

ANSWER_SECONDS = 20.0
"""How long an answer is waited for; of a stream, its beginning."""

MAX_ANSWER_BYTES = 64 * 1024 * 1024
"""One object at most: 1.5 MiB in etcd unless its limit was raised, and up to six times that as JSON."""

MAX_REFUSAL_BYTES = 1024 * 1024
"""Of an answer that says why not; of what is longer the HTTP status has to do."""


_TOO_MANY = (NO_ANSWER, HTTPStatus.TOO_MANY_REQUESTS)


class TooLong(ApiError):
    """The answer is longer than who asked is ready to hold; nothing of it is kept."""


def always() -> bool:
    """What is asked when nothing speaks against it."""
    return True


@dataclass(frozen=True)
class Request:
    """What is asked. `query` leaves out what is empty; `may_send` is asked at the last moment before it is sent."""

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
        """Whose object it is about; "" for none in particular."""
        _, is_there, rest = self.path.partition("/namespaces/")
        return rest.partition("/")[0] if is_there else ""

    @property
    def kind(self) -> str:
        """What requests that take about as long have in common: the verb, and the path without names."""
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
        """The context's."""
        return self._access.namespace

    async def close(self) -> None:
        """Close all connections; streams break."""
        for access in (self._access, *self._outdated):
            await access.close()

    async def text(self, request: Request, most: int = MAX_ANSWER_BYTES) -> bytes:
        """What is answered. Raises ApiError, and of these `TooLong` when it is longer than `most` bytes."""
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
        """What is answered, bit by bit, for as long as it takes. Raises ApiError, also when it's cut off."""
        async with self._answer(request, aiohttp.ClientTimeout(total=None)) as response:
            async for chunk in response.content.iter_any():
                yield chunk

    @contextlib.asynccontextmanager
    async def _measured(self, request: Request) -> AsyncIterator[None]:
        """How many requests of its namespace may be in flight follows from how long this one takes."""
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            yield
        except ApiError as error:
            # A refusal is no measure: it takes less than what it refuses.
            if error.status in _TOO_MANY:
                self._limit.unanswered(request.namespace)
            raise
        # Reads are as long as what they find.
        if request.method != "GET":
            self._limit.answered(request.namespace, request.kind, clock() - began, clock())

    @contextlib.asynccontextmanager
    async def _answer(self, request: Request, limit: aiohttp.ClientTimeout) -> AsyncIterator[aiohttp.ClientResponse]:
        # Cancellation passes; everything else that comes from below is the API server not answering.
        try:
            response = await self._send(request, limit)
            try:
                yield response
            finally:
                response.release() if limit.total is not None else _hang_up(response)
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
            # A token from a plug-in or a file may have expired. What is refused so was not carried out.
            return await _begin(await self._renewed(access, refused), request, limit)

    async def _renewed(self, used: Access, refused: ApiError) -> Access:
        async with self._renewing:
            if self._access is used:
                try:
                    self._access = await find(self._kubeconfig)
                except NoCluster as gone:
                    raise refused from gone
                # Streams of others are still on it.
                self._outdated.append(used)
            return self._access

    def _unanswered(self, request: Request, why: str) -> ApiError:
        server = self._access.url
        return ApiError(NO_ANSWER, "NoAnswer", f"no answer from {server} to {request.method} {request.path} {why}")


def _hang_up(stream: aiohttp.ClientResponse) -> None:
    """Leave a stream, read to its end or not: nothing more is read of it for the connection's sake."""
    # TLS would wait for the other side's farewell, with a process that ends meanwhile.
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
    """What is answered; None when that is longer than `most` bytes."""
    result = bytearray()
    async for chunk in response.content.iter_any():
        result += chunk
        if len(result) > most:
            return None
    return bytes(result)
