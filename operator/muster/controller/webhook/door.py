"""The webhook's open connections: few, for only API servers have business there, and any pod of the cluster may knock.

A connection counts from its first packet on. Who comes when all places are taken gets that of the oldest connection of
the address that has most, so that one pod can't keep the API servers out.
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
"""Each costs up to 300 KiB while TLS is set up. An API server needs one or two."""

HANDSHAKE_SECONDS = 3.0

ACCEPT_AGAIN_SECONDS = 0.1
"""After the process ran out of descriptors."""


BACKLOG = 512


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens there: who comes before the `Door` is open waits for it. Raises `OSError`."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.create_server((host, port), family=family, backlog=BACKLOG)
    listening.setblocking(False)
    return listening


@dataclass(eq=False)
class Caller:
    """One accepted connection, from `address`."""

    address: str
    greeting: asyncio.Task[None] | None = None
    transport: asyncio.WriteTransport | None = None

    def drop(self) -> None:
        """Close it at once."""
        if self.greeting is not None:
            self.greeting.cancel()
        if self.transport is not None:
            self.transport.abort()


@dataclass
class Door:
    """Accepts connections on `listening` for as long as `run` runs. `context` is asked for at each handshake."""

    listening: socket.socket
    context: Callable[[], ssl.SSLContext]
    make_protocol: Callable[[Caller], asyncio.Protocol]
    # dictionaries are ordered sets: the oldest comes first
    _callers: dict[Caller, None] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._callers)

    async def run(self) -> None:
        """Accept until cancelled; then all connections are closed."""
        loop = asyncio.get_running_loop()
        try:
            while True:
                try:
                    connection, address = await loop.sock_accept(self.listening)
                except OSError:
                    await asyncio.sleep(ACCEPT_AGAIN_SECONDS)
                    continue
                self._welcome(connection, str(address[0]))
                # accepting doesn't wait while the kernel's queue is full: everybody else has to get a turn too
                await asyncio.sleep(0)
        finally:
            for caller in list(self._callers):
                caller.drop()
            self._callers.clear()

    def leave(self, caller: Caller) -> None:
        """The caller's connection is closed. Again is no harm."""
        self._callers.pop(caller, None)

    def _welcome(self, connection: socket.socket, address: str) -> None:
        if len(self._callers) >= MAX_CONNECTIONS:
            busiest = Counter(caller.address for caller in self._callers).most_common(1)[0][0]
            oldest = next(caller for caller in self._callers if caller.address == busiest)
            self.leave(oldest)
            oldest.drop()
        caller = Caller(address)
        self._callers[caller] = None
        caller.greeting = asyncio.create_task(self._greet(caller, connection))

    async def _greet(self, caller: Caller, connection: socket.socket) -> None:
        try:
            transport, _ = await asyncio.get_running_loop().connect_accepted_socket(
                lambda: self.make_protocol(caller),
                connection,
                ssl=self.context(),
                ssl_handshake_timeout=HANDSHAKE_SECONDS,
                ssl_shutdown_timeout=1.0,
            )
            caller.transport = transport
        except OSError:
            # no TLS, no trust in the authority, or no more interest
            self.leave(caller)
        except asyncio.CancelledError:
            with contextlib.suppress(OSError):
                connection.close()
            raise
