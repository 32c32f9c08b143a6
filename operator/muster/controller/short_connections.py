"""An HTTP server for untrusted clients. A connection serves one request, and is closed after a time limit."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import web

from muster.collector.server.strict_http import NO_ACCESS_LOG

MAX_LINE_BYTES = 1024
MAX_HEADERS = 32

Handler = Callable[[web.BaseRequest], Awaitable[web.Response]]


@dataclass(frozen=True)
class ConnectionLimits:
    """The limits of a server. Beyond `max_connections`, a new connection closes the oldest one."""

    max_connections: int
    max_seconds: float


def open_listening_socket(host: str, port: int, backlog: int) -> socket.socket:
    """Open a listening socket. Raises `OSError`."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=backlog)


@asynccontextmanager
async def serve_requests(
    listening_socket: socket.socket, handle: Handler, limits: ConnectionLimits
) -> AsyncIterator[None]:
    """Answer requests with `handle` until the `with` block ends."""
    server = _Server(handle, limits)
    listener = await asyncio.get_running_loop().create_server(lambda: _Connection(server), sock=listening_socket)
    try:
        yield
    finally:
        listener.close()
        server.abort()
        await server.shutdown(0.0)


class _Server(web.Server):
    """An aiohttp server with a limited number of connections."""

    def __init__(self, handle: Handler, limits: ConnectionLimits) -> None:
        async def answer(request: web.BaseRequest) -> web.Response:
            response = await handle(request)
            response.force_close()
            return response

        super().__init__(answer)
        self.limits = limits
        self._transports: dict[asyncio.BaseTransport, None] = {}

    def add(self, transport: asyncio.BaseTransport) -> None:
        if len(self._transports) >= self.limits.max_connections:
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
            server,
            loop=asyncio.get_running_loop(),
            access_log=NO_ACCESS_LOG,
            max_line_size=MAX_LINE_BYTES,
            max_headers=MAX_HEADERS,
        )
        self._server = server
        self._timeout: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._server.add(transport)
        self._timeout = asyncio.get_running_loop().call_later(
            self._server.limits.max_seconds, self._abort_transport, transport
        )

    def connection_lost(self, exc: BaseException | None) -> None:
        if self._timeout is not None:
            self._timeout.cancel()
        if self.transport is not None:
            self._server.remove(self.transport)
        super().connection_lost(exc)

    def _abort_transport(self, transport: asyncio.BaseTransport) -> None:
        if isinstance(transport, asyncio.WriteTransport):
            transport.abort()
