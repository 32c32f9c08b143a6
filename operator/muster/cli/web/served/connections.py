"""The connections of the board of a cluster: limited in number and, before a reader is known, in time."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field

from aiohttp import web

from muster.collector.server.strict_http import StrictConnection

MAX_CONNECTIONS = 512
"""Beyond it, a new connection closes the oldest one whose reader is unknown; without one it is closed itself."""

MAX_PER_READER = 32

ADMISSION_SECONDS = 10.0
"""A connection without a valid token is closed after this time."""

IDLE_SECONDS = 30.0
LINGER_SECONDS = 1.0

MAX_FIELD_BYTES = 16 * 1024
"""The longest header: some clusters have tokens of several kilobytes."""


@dataclass
class BoardConnections:
    """The open connections. `readers` counts those of each reader."""

    # an ordered set: the oldest connection is first
    unknown: dict[BoardConnection, None] = field(default_factory=dict)
    readers: Counter[str] = field(default_factory=Counter)

    def add(self, connection: BoardConnection) -> bool:
        """Add a new connection. Return False if there is no room."""
        if len(self.unknown) + self.readers.total() >= MAX_CONNECTIONS:
            oldest = next(iter(self.unknown), None)
            if oldest is None:
                return False
            oldest.abort()
        self.unknown[connection] = None
        return True

    def admit(self, connection: BoardConnection, reader: str) -> bool:
        """Count a connection as the reader's. Return False if they have too many."""
        if self.readers[reader] >= MAX_PER_READER:
            return False
        self.unknown.pop(connection, None)
        self.readers[reader] += 1
        return True

    def remove(self, connection: BoardConnection, reader: str | None) -> None:
        """Remove a closed connection."""
        self.unknown.pop(connection, None)
        if reader is not None:
            self.readers[reader] -= 1
            if not self.readers[reader]:
                del self.readers[reader]


class BoardConnection(StrictConnection):
    """A connection of a browser."""

    __slots__ = ("_connections", "_expiry", "_reader")

    def __init__(self, server: web.Server, connections: BoardConnections) -> None:
        super().__init__(
            server, idle_seconds=IDLE_SECONDS, linger_seconds=LINGER_SECONDS, max_field_bytes=MAX_FIELD_BYTES
        )
        self._connections = connections
        self._expiry: asyncio.TimerHandle | None = None
        self._reader: str | None = None

    def admit(self, reader: str) -> bool:
        """Keep the connection open for a reader. Return False if they have too many."""
        if self._reader == reader:
            return True
        # Until then it counts for its first reader: it must always count for someone.
        if not self._connections.admit(self, reader):
            return False
        if self._reader is not None:
            self._connections.remove(self, self._reader)
        self._reader = reader
        self._cancel_expiry()
        return True

    def abort(self) -> None:
        """Close the connection at once."""
        self._connections.remove(self, self._reader)
        self._reader = None
        if isinstance(self.transport, asyncio.WriteTransport):
            self.transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if not self._connections.add(self):
            self.abort()
            return
        self._expiry = asyncio.get_running_loop().call_later(ADMISSION_SECONDS, self.abort)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._cancel_expiry()
        self._connections.remove(self, self._reader)
        self._reader = None
        super().connection_lost(exc)

    def _cancel_expiry(self) -> None:
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
