"""Connections that end with their client, also those that aiohttp is already closing."""

from __future__ import annotations

import asyncio
import ssl
from weakref import WeakSet

import aiohttp
from aiohttp.connector import Connection
from aiohttp.tracing import Trace


class AbortingConnector(aiohttp.TCPConnector):
    """A connector without a limit that aborts all its connections when it is closed.

    aiohttp closes the connection of a cancelled request as TLS asks for, and forgets it. The connection stays open
    until the server has answered. If the event loop ends before, nothing closes the connection's socket.
    """

    def __init__(self, context: ssl.SSLContext) -> None:
        super().__init__(limit=0, ssl=context)
        self._transports: WeakSet[asyncio.Transport] = WeakSet()

    async def connect(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - the signature is aiohttp's
    ) -> Connection:
        """Return a connection for the request."""
        connection = await super().connect(req, traces, timeout)
        if connection.transport is not None:
            self._transports.add(connection.transport)
        return connection

    async def close(self, *, abort_ssl: bool = True) -> None:
        """Abort all connections."""
        for transport in tuple(self._transports):
            transport.abort()
        await super().close(abort_ssl=abort_ssl)
        # The event loop needs one more iteration to close an aborted connection, or one that is being opened.
        await asyncio.sleep(0)
