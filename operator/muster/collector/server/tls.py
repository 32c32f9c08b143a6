"""TLS with little memory for each connection, and with a measurement of its processor time.

asyncio's own implementation has a buffer of 256 KiB for each connection, more than the rest of a connection's memory.
"""

import asyncio
import ssl
import time
from asyncio.sslproto import SSLProtocol
from collections.abc import Callable

SHUTDOWN_SECONDS = 1.0


class TlsProtocol(SSLProtocol):
    """Calls `charge` with the processor seconds of each input, and `connection_lost` when the connection is closed."""

    max_size = 16 * 1024
    """The size of a TLS record."""

    def __init__(
        self,
        context: ssl.SSLContext,
        protocol: asyncio.Protocol,
        handshake_done: asyncio.Future[None],
        *,
        handshake_seconds: float,
        charge: Callable[[float], None],
        connection_lost: Callable[[], None],
    ) -> None:
        super().__init__(
            asyncio.get_running_loop(),
            protocol,
            context,
            handshake_done,
            server_side=True,
            ssl_handshake_timeout=handshake_seconds,  # type: ignore[arg-type] # typeshed is wrong: any number
            ssl_shutdown_timeout=SHUTDOWN_SECONDS,
        )
        self._charge = charge
        self._on_close = connection_lost

    def buffer_updated(self, nbytes: int) -> None:
        started_at = time.thread_time()
        super().buffer_updated(nbytes)
        self._charge(time.thread_time() - started_at)

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        self._on_close()
