"""What the kubelet asks: whether the operator works, and whether agents may be sent to it.

The elector's process serves it (`leader/elector.py`), which knows no jobs: the main process sends it the complaints. An
endpoint that needs jobs or ranks belongs into the main process (`replica.py`).
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus

from aiohttp import web

from muster.collector.door.strict_http import NO_ACCESS_LOG

MAX_CONNECTIONS = 64
"""At once. Any client that reaches the port may connect: the oldest connection is closed for the next one."""

CONNECTION_SECONDS = 2.0
"""How long a connection stays, whatever is asked: the kubelet opens one for each question."""

Complaints = Callable[[], Iterable[str]]
"""Says what is wrong at this moment; nothing when all is well."""


@dataclass(frozen=True)
class Check:
    """`holds` is asked each time; `complaint` says what is wrong when it doesn't."""

    complaint: str
    holds: Callable[[], bool]


def failed(checks: Iterable[Check]) -> tuple[str, ...]:
    """The complaints of those that don't hold."""
    return tuple(check.complaint for check in checks if not check.holds())


def listen(host: str, port: int) -> socket.socket:
    """Where the kubelet will ask. Raises `OSError`."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=MAX_CONNECTIONS)


@asynccontextmanager
async def serve_health(listening: socket.socket, alive: Complaints, ready: Complaints) -> AsyncIterator[None]:
    """Answer /healthz and /readyz for as long as the block lasts."""
    answers = {"/healthz": alive, "/readyz": ready}
    server = _Server(_answering(answers))
    accepting = await asyncio.get_running_loop().create_server(lambda: _Connection(server), sock=listening)
    try:
        yield
    finally:
        accepting.close()
        server.abort()
        await server.shutdown(0.0)


def _answering(answers: dict[str, Complaints]) -> Callable[[web.BaseRequest], Awaitable[web.Response]]:
    async def answer(request: web.BaseRequest) -> web.Response:
        asked = answers.get(request.path)
        if asked is None:
            return _closing(web.Response(status=HTTPStatus.NOT_FOUND))
        complaints = tuple(asked())
        if not complaints:
            return _closing(web.Response(text="ok\n"))
        text = "".join(f"{line}\n" for line in complaints)
        return _closing(web.Response(text=text, status=HTTPStatus.SERVICE_UNAVAILABLE))

    return answer


def _closing(response: web.Response) -> web.Response:
    response.force_close()
    return response


class _Server(web.Server):
    """aiohttp's server, with few places."""

    def __init__(self, handler: Callable[[web.BaseRequest], Awaitable[web.Response]]) -> None:
        super().__init__(handler)
        self._open: dict[asyncio.BaseTransport, None] = {}

    def enter(self, transport: asyncio.BaseTransport) -> None:
        if len(self._open) >= MAX_CONNECTIONS:
            self._abort(next(iter(self._open)))
        self._open[transport] = None

    def leave(self, transport: asyncio.BaseTransport) -> None:
        self._open.pop(transport, None)

    def abort(self) -> None:
        for transport in tuple(self._open):
            self._abort(transport)

    def _abort(self, transport: asyncio.BaseTransport) -> None:
        self._open.pop(transport, None)
        if isinstance(transport, asyncio.WriteTransport):
            transport.abort()


class _Connection(web.RequestHandler):
    """One connection: a question, its answer, and no more."""

    __slots__ = ("_limit", "_visited")

    def __init__(self, server: _Server) -> None:
        super().__init__(
            server, loop=asyncio.get_running_loop(), access_log=NO_ACCESS_LOG, max_line_size=1024, max_headers=32
        )
        self._visited = server
        self._limit: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._visited.enter(transport)
        self._limit = asyncio.get_running_loop().call_later(CONNECTION_SECONDS, self._end, transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        if self._limit is not None:
            self._limit.cancel()
        if self.transport is not None:
            self._visited.leave(self.transport)
        super().connection_lost(exc)

    def _end(self, transport: asyncio.BaseTransport) -> None:
        if isinstance(transport, asyncio.WriteTransport):
            transport.abort()
