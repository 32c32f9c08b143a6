"""The HTTPS server to which agents report."""

import asyncio
import contextlib
import resource
import socket
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from aiohttp import web

from muster.collector.pod_directory import PodDirectory
from muster.collector.routes import Routes, make_refusal_response
from muster.collector.server.authentication import Authenticator
from muster.collector.server.connection_limits import ConnectionLimits
from muster.collector.server.connections import AcceptedConnection, Connections
from muster.collector.server.cpu_budgets import CpuBudgets
from muster.collector.server.refusal import RefusalReason, RequestRefused
from muster.collector.server.refusal_counter import RefusalCounter
from muster.collector.server.strict_http import StrictConnection
from muster.collector.store import RankStore
from muster.collector.trust.certificate import ServingCertificate, make_server_context
from muster.collector.trust.tokens import PodClaim, TokenVerifier

IDLE_SECONDS = 75.0
"""A pod's connection stays open this long between requests: longer than two heartbeats."""

SHUTDOWN_SECONDS = 1.0

BACKLOG = 4096
"""The maximum number of connections in the kernel's queue; the system may allow fewer."""

MAX_QUEUED_REQUESTS = 1
"""The maximum number of queued requests of a connection. Agents wait for a response before the next request."""

MAX_OTHER_DESCRIPTORS = 1024
"""The maximum number of descriptors for the rest of the process: the API server, the webhook and files."""

PARSE_CHUNK_BYTES = 2048
"""The number of bytes that the HTTP parser gets at a time."""

READ_BUFFER_BYTES = 16 * 1024
"""The part of a body that a connection buffers until the handler reads it."""

MAX_FIELD_BYTES = 16 * 1024
"""The limit for a header, which may be a token."""


class Collector:
    """Stores agents' reports, and sends commands to agents. It refuses all requests until `start_leading` is called.

    `clock` returns Unix seconds. `refusals` counts refused requests and connections.
    """

    def __init__(
        self,
        *,
        store: RankStore,
        verifier: TokenVerifier,
        directory: PodDirectory,
        certificate: ServingCertificate,
        clock: Callable[[], float],
        limits: ConnectionLimits | None = None,
    ) -> None:
        self.refusals = RefusalCounter()
        self._context = make_server_context(certificate)
        self._limits = _limit_to_descriptors(limits or ConnectionLimits())
        self._cpu = CpuBudgets(self._count_connected_pods)
        self._routes = Routes(
            store=store,
            authenticator=Authenticator(verifier, directory, _record_pod),
            clock=clock,
            refusals=self.refusals,
            cpu=self._cpu,
            body_seconds=self._limits.body_seconds,
        )
        self._server: _Server | None = None
        self._connections: Connections | None = None
        self._accept_task: asyncio.Task[None] | None = None

    async def start(self, host: str, port: int = 0) -> str:
        """Listen on `host`, on any free port if `port` is 0. Returns the URL. Raises `OSError`."""
        listening_socket = socket.create_server(
            (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=BACKLOG
        )
        listening_socket.setblocking(False)
        self._server = _Server(self._routes, self.refusals, self._limits.linger_seconds)
        self._connections = Connections(
            listening_socket, self._context, self._server.make_connection, self._limits, self.refusals, self._cpu
        )
        self._accept_task = asyncio.create_task(self._connections.run(), name="collector")
        name = f"[{host}]" if ":" in host else host
        return f"https://{name}:{listening_socket.getsockname()[1]}"

    @property
    def refusal_counts(self) -> Counter[RefusalReason]:
        """The number of refused requests and connections, by reason."""
        return self.refusals.counts

    @property
    def open_connections(self) -> int:
        """The number of connections in any state."""
        return 0 if self._connections is None else len(self._connections)

    def start_leading(self, holds_lease: Callable[[], bool]) -> None:
        """Start to accept reports and to send commands, while `holds_lease()` is true."""
        self._routes.start_leading(holds_lease)

    def step_down(self, leader: str | None) -> None:
        """Respond 503 to all requests, and end long polls at once; `leader` is the new leader (None: unknown)."""
        self._routes.step_down(leader)

    def use_certificate(self, certificate: ServingCertificate) -> None:
        """Use this certificate for new connections."""
        self._context = make_server_context(certificate)
        if self._connections is not None:
            self._connections.context = self._context

    def _count_connected_pods(self, namespace: str) -> float:
        return 0.0 if self._connections is None else self._connections.count_pods(namespace)

    async def close(self) -> None:
        """End long polls, let current requests finish, and close all connections."""
        if self._server is None or self._connections is None or self._accept_task is None:
            return
        self._accept_task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._accept_task
        self._connections.listening_socket.close()
        self._routes.close()
        self._server.pre_shutdown()
        await self._server.shutdown(SHUTDOWN_SECONDS)
        self._connections.close()
        # the transports close their sockets in the loop's next iteration
        await asyncio.sleep(0)


class _Server(web.Server):
    """An aiohttp server whose connections know their `AcceptedConnection`."""

    def __init__(self, routes: Routes, refusals: RefusalCounter, linger_seconds: float) -> None:
        super().__init__(
            routes.handle,
            handler_cancellation=True,  # a long poll ends with its connection
        )
        self.refusals = refusals
        self.linger_seconds = linger_seconds

    def make_connection(self, client: AcceptedConnection) -> "_Connection":
        return _Connection(self, client)


class _Connection(StrictConnection):
    """A connection of an agent, or an unauthenticated one."""

    __slots__ = ("_is_refusing", "_refusals", "client")

    def __init__(self, server: _Server, client: AcceptedConnection) -> None:
        super().__init__(
            server,
            idle_seconds=IDLE_SECONDS,
            linger_seconds=server.linger_seconds,
            max_field_bytes=MAX_FIELD_BYTES,
            read_buffer_bytes=READ_BUFFER_BYTES,
        )
        self.client = client
        self._is_refusing = False
        self._refusals = server.refusals

    def data_received(self, data: bytes) -> None:
        """Parse in small steps, and refuse chunked bodies: a chunk of one byte costs as much as a chunk of 16 KiB."""
        for start in range(0, len(data), PARSE_CHUNK_BYTES):
            if self._is_refusing:
                return
            super().data_received(data[start : start + PARSE_CHUNK_BYTES])
            if len(self._messages) > MAX_QUEUED_REQUESTS:
                self._is_refusing = True
                self.client.refuse(RefusalReason.BAD_HTTP)
            elif self._messages and getattr(self._messages[-1][0], "chunked", True):
                # respond to the chunked or malformed request, and close the connection without reading the rest
                self._is_refusing = True
                self._lingering_time = 0.0

    def make_malformed_response(self, _status: int, /) -> web.StreamResponse:
        """Count malformed HTTP, and return the response to it."""
        pod = self.client.pod
        if pod is None:
            self._refusals.count(RefusalReason.BAD_HTTP, self.client.address)
        else:
            self._refusals.count(RefusalReason.BAD_HTTP, pod.pod_name, pod.namespace)
        return make_refusal_response(RequestRefused(RefusalReason.BAD_HTTP))


def _record_pod(request: web.BaseRequest, pod: PodClaim) -> None:
    connection = request.protocol
    if isinstance(connection, _Connection):
        connection.client.authenticate(pod)


def _limit_to_descriptors(limits: ConnectionLimits) -> ConnectionLimits:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return limits
    max_connections = max(16, soft - min(soft // 2, MAX_OTHER_DESCRIPTORS))
    return replace(
        limits,
        connections=min(limits.connections, max_connections),
        unauthenticated=min(limits.unauthenticated, max(8, max_connections // 2)),
    )
