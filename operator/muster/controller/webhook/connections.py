"""Limit the webhook's connections: only API servers need to connect, but any pod of the cluster can.

When the limit is reached, a new connection closes the oldest connection of the address with the most connections, so
that one pod can't block the API servers. A connection without a request is closed first: an API server opens one for
each of its concurrent requests, and keeps it open.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

MAX_CONNECTIONS = 32
"""The maximum number of connections. An API server opens one or two. A TLS handshake needs up to 300 KiB."""

HANDSHAKE_SECONDS = 3.0
"""The timeout of a TLS handshake."""

ACCEPT_RETRY_SECONDS = 0.1
"""The delay after the process ran out of file descriptors."""


BACKLOG = 512


def open_listening_socket(host: str, port: int) -> socket.socket:
    """Open a listening socket. Raises `OSError`."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening_socket = socket.create_server((host, port), family=family, backlog=BACKLOG)
    listening_socket.setblocking(False)
    return listening_socket


@dataclass(eq=False)
class AcceptedConnection:
    """An accepted connection from `address`. `is_answering`: whether it has a request now."""

    address: str
    is_answering: bool = False
    handshake: asyncio.Task[None] | None = None
    transport: asyncio.WriteTransport | None = None

    def close(self) -> None:
        """Close the connection at once."""
        if self.handshake is not None:
            self.handshake.cancel()
        if self.transport is not None:
            self.transport.abort()


@dataclass
class WebhookConnections:
    """Accepts connections on `listening_socket`. Each handshake uses the context that `get_context` returns."""

    listening_socket: socket.socket
    get_context: Callable[[], ssl.SSLContext]
    make_protocol: Callable[[AcceptedConnection], asyncio.Protocol]
    # an ordered set: the oldest connection is first
    _connections: dict[AcceptedConnection, None] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._connections)

    async def run(self) -> None:
        """Accept connections until cancelled, and then close all of them."""
        loop = asyncio.get_running_loop()
        try:
            while True:
                try:
                    accepted_socket, address = await loop.sock_accept(self.listening_socket)
                except OSError:
                    await asyncio.sleep(ACCEPT_RETRY_SECONDS)
                    continue
                self._add(accepted_socket, str(address[0]))
                # while the kernel's queue has connections, sock_accept returns without waiting: let other tasks run
                await asyncio.sleep(0)
        finally:
            for connection in list(self._connections):
                connection.close()
            self._connections.clear()

    def remove(self, connection: AcceptedConnection) -> None:
        """Remove a closed connection. May be called twice."""
        self._connections.pop(connection, None)

    def _add(self, accepted_socket: socket.socket, address: str) -> None:
        if len(self._connections) >= MAX_CONNECTIONS:
            busiest = Counter(connection.address for connection in self._connections).most_common(1)[0][0]
            candidates = [connection for connection in self._connections if connection.address == busiest]
            oldest = min(candidates, key=lambda connection: connection.is_answering)
            self.remove(oldest)
            oldest.close()
        connection = AcceptedConnection(address)
        self._connections[connection] = None
        connection.handshake = asyncio.create_task(self._handshake(connection, accepted_socket))

    async def _handshake(self, connection: AcceptedConnection, accepted_socket: socket.socket) -> None:
        try:
            transport, _ = await asyncio.get_running_loop().connect_accepted_socket(
                lambda: self.make_protocol(connection),
                accepted_socket,
                ssl=self.get_context(),
                ssl_handshake_timeout=HANDSHAKE_SECONDS,
                ssl_shutdown_timeout=1.0,
            )
            connection.transport = transport
        except OSError:
            # the client doesn't use TLS, doesn't trust the certificate, or has disconnected
            self.remove(connection)
        except asyncio.CancelledError:
            with contextlib.suppress(OSError):
                accepted_socket.close()
            raise
