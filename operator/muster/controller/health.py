"""Serve the kubelet's probes: liveness (/healthz) and readiness (/readyz).

The elector's process serves them (`leader/elector.py`). It has no access to jobs: the main process sends it the failure
messages. Put an endpoint that needs jobs or ranks into the main process (`replica.py`).
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus

from aiohttp import web

from muster.collector.server.strict_http import NO_ACCESS_LOG

MAX_CONNECTIONS = 64
"""The limit of connections, because any client may connect. A new connection beyond it closes the oldest."""

CONNECTION_SECONDS = 2.0
"""The maximum age of a connection. The kubelet opens a new one for each probe."""

FailureMessages = Callable[[], Iterable[str]]
"""A function that returns a message for each problem."""


@dataclass(frozen=True)
class Check:
    """A health check. If `passes` returns False, the probe reports `message`."""

    message: str
    passes: Callable[[], bool]


def failure_messages(checks: Iterable[Check]) -> tuple[str, ...]:
    """Return the messages of the failed checks."""
    return tuple(check.message for check in checks if not check.passes())


def listen(host: str, port: int) -> socket.socket:
    """Open the socket for the kubelet's probes. Raises `OSError`."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=MAX_CONNECTIONS)


@asynccontextmanager
async def serve_health(listening: socket.socket, alive: FailureMessages, ready: FailureMessages) -> AsyncIterator[None]:
    """Serve /healthz and /readyz until the `with` block ends."""
    probes = {"/healthz": alive, "/readyz": ready}
    server = _Server(_make_handler(probes))
    listener = await asyncio.get_running_loop().create_server(lambda: _Connection(server), sock=listening)
    try:
        yield
    finally:
        listener.close()
        server.abort()
        await server.shutdown(0.0)


def _make_handler(probes: dict[str, FailureMessages]) -> Callable[[web.BaseRequest], Awaitable[web.Response]]:
    async def answer(request: web.BaseRequest) -> web.Response:
        probe = probes.get(request.path)
        if probe is None:
            return _close_after(web.Response(status=HTTPStatus.NOT_FOUND))
        messages = tuple(probe())
        if not messages:
            return _close_after(web.Response(text="ok\n"))
        text = "".join(f"{line}\n" for line in messages)
        return _close_after(web.Response(text=text, status=HTTPStatus.SERVICE_UNAVAILABLE))

    return answer


def _close_after(response: web.Response) -> web.Response:
    response.force_close()
    return response


class _Server(web.Server):
    """An aiohttp server with a limited number of connections."""

    def __init__(self, handler: Callable[[web.BaseRequest], Awaitable[web.Response]]) -> None:
        super().__init__(handler)
        self._transports: dict[asyncio.BaseTransport, None] = {}

    def add(self, transport: asyncio.BaseTransport) -> None:
        if len(self._transports) >= MAX_CONNECTIONS:
            self._abort(next(iter(self._transports)))
        self._transports[transport] = None

    def remove(self, transport: asyncio.BaseTransport) -> None:
        self._transports.pop(transport, None)

    def abort(self) -> None:
        for transport in tuple(self._transports):
            self._abort(transport)

    def _abort(self, transport: asyncio.BaseTransport) -> None:
        self._transports.pop(transport, None)
        if isinstance(transport, asyncio.WriteTransport):
            transport.abort()


class _Connection(web.RequestHandler):
    """A connection for one request."""

    __slots__ = ("_server", "_timeout")

    def __init__(self, server: _Server) -> None:
        super().__init__(
            server, loop=asyncio.get_running_loop(), access_log=NO_ACCESS_LOG, max_line_size=1024, max_headers=32
        )
        self._server = server
        self._timeout: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._server.add(transport)
        self._timeout = asyncio.get_running_loop().call_later(CONNECTION_SECONDS, self._end, transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        if self._timeout is not None:
            self._timeout.cancel()
        if self.transport is not None:
            self._server.remove(self.transport)
        super().connection_lost(exc)

    def _end(self, transport: asyncio.BaseTransport) -> None:
        if isinstance(transport, asyncio.WriteTransport):
            transport.abort()
