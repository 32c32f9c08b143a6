"""One connection's TLS, in little memory, and with its processor time reported.

asyncio's own server side keeps a buffer of 256 KiB a connection, which is more than the rest of it together.
"""

import asyncio
import ssl
import time
from asyncio.sslproto import SSLProtocol
from collections.abc import Callable

SHUTDOWN_SECONDS = 1.0


class TlsProtocol(SSLProtocol):
    """`worked` hears the processor seconds of what came in, `connection_lost` that the connection is closed."""

    max_size = 16 * 1024
    """A TLS record has no more."""

    def __init__(
        self,
        context: ssl.SSLContext,
        protocol: asyncio.Protocol,
        established: asyncio.Future[None],
        *,
        handshake_seconds: float,
        worked: Callable[[float], None],
        connection_lost: Callable[[], None],
    ) -> None:
        super().__init__(
            asyncio.get_running_loop(),
            protocol,
            context,
            established,
            server_side=True,
            ssl_handshake_timeout=handshake_seconds,  # type: ignore[arg-type] # typeshed is wrong: any number
            ssl_shutdown_timeout=SHUTDOWN_SECONDS,
        )
        self._worked = worked
        self._gone = connection_lost

    def buffer_updated(self, nbytes: int) -> None:
        began = time.thread_time()
        super().buffer_updated(nbytes)
        self._worked(time.thread_time() - began)

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        self._gone()
