"""Read request bodies in bounded memory and time. Memory is reserved before the first byte of a body is read."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

from muster.collector.server.refusal import RefusalReason, RequestRefused
from muster.collector.trust.tokens import PodClaim

MAX_BYTES_IN_FLIGHT = 8 * 1024 * 1024
"""The limit for all bodies together: enough for thousands of heartbeats, or 8 of the largest reports."""

RETRY_SECONDS = 1.0


@dataclass(eq=False)
class _Body:
    """A body that is being read."""

    pod: PodClaim
    size: int
    timeout: asyncio.Timeout
    is_arriving: bool = True
    is_crowded_out: bool = False


@dataclass
class BodyReader:
    """Reads bodies. When the memory is used up, it drops the oldest body of the namespace with the most memory.

    Each pod has one body at a time, because only its newest report matters.
    """

    _namespaces: dict[str, dict[_Body, None]] = field(default_factory=dict)
    _pods: dict[str, _Body] = field(default_factory=dict)
    reserved: int = 0

    @asynccontextmanager
    async def read(
        self, request: web.BaseRequest, pod: PodClaim, max_bytes: int, seconds: float
    ) -> AsyncIterator[bytes]:
        """Read the whole body; its memory is reserved until the `with` block ends.

        Raises `RequestRefused`.
        """
        body = _Body(pod, _check_size(request, max_bytes), asyncio.timeout(seconds))
        self._reserve(body)
        try:
            yield await self._read(request, body)
        finally:
            self._release(body)

    async def _read(self, request: web.BaseRequest, body: _Body) -> bytes:
        try:
            async with body.timeout:
                return await request.content.readexactly(body.size) if body.size else b""
        except TimeoutError:
            if body.is_crowded_out:
                raise RequestRefused(RefusalReason.CROWDED_OUT, RETRY_SECONDS) from None
            raise RequestRefused(RefusalReason.TOO_SLOW) from None
        except (web.RequestPayloadError, asyncio.IncompleteReadError):
            raise RequestRefused(RefusalReason.BAD_HTTP) from None
        finally:
            body.is_arriving = False

    def _reserve(self, body: _Body) -> None:
        older = self._pods.get(body.pod.pod_uid)
        if older is not None:
            self._crowd_out(older)
        while self.reserved + body.size > MAX_BYTES_IN_FLIGHT:
            largest = max(self._namespaces, key=self._get_reserved_bytes)
            if largest == body.pod.namespace:
                raise RequestRefused(RefusalReason.CROWDED_OUT, RETRY_SECONDS)
            arriving = (other for other in self._namespaces[largest] if other.is_arriving)
            self._crowd_out(next(arriving, None))
        self._pods[body.pod.pod_uid] = body
        self._namespaces.setdefault(body.pod.namespace, {})[body] = None
        self.reserved += body.size

    def _get_reserved_bytes(self, namespace: str) -> int:
        return sum(body.size for body in self._namespaces[namespace])

    def _crowd_out(self, body: _Body | None) -> None:
        # a complete body is already being handled: don't drop it
        if body is None or not body.is_arriving:
            raise RequestRefused(RefusalReason.CROWDED_OUT, RETRY_SECONDS)
        body.is_crowded_out = True
        self._release(body)
        body.timeout.reschedule(asyncio.get_running_loop().time())

    def _release(self, body: _Body) -> None:
        bodies = self._namespaces.get(body.pod.namespace, {})
        if body not in bodies:
            return
        del bodies[body]
        self.reserved -= body.size
        if not bodies:
            del self._namespaces[body.pod.namespace]
        if self._pods.get(body.pod.pod_uid) is body:
            del self._pods[body.pod.pod_uid]


def _check_size(request: web.BaseRequest, max_bytes: int) -> int:
    # a compressed body may become arbitrarily large
    if request.headers.get("Content-Encoding", "identity") != "identity":
        raise RequestRefused(RefusalReason.COMPRESSED)
    # without a length, the collector can't reserve memory
    if request.content_length is None:
        raise RequestRefused(RefusalReason.LENGTH_REQUIRED)
    if request.content_length > max_bytes:
        raise RequestRefused(RefusalReason.TOO_LARGE)
    return request.content_length
