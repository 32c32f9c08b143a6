"""Connections with a total time limit."""

from __future__ import annotations

import socket
from contextlib import suppress
from threading import Lock, Timer
from typing import Self

from muster.storage.git.address_policy import AddressPolicy, check_address

CONNECT_SECONDS = 20.0
"""The time limit for connecting to one of a host's addresses, and for the TLS handshake."""


class ConnectionsClosed(OSError):
    """The time limit or the caller has closed the connections."""


class TimedConnections:
    """The connections of one thread. They close after `seconds`, or when another thread calls `close`.

    A socket's timeout is not enough, because a host that sends one byte a minute never exceeds it.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.is_closed = False
        self._timer = Timer(seconds, self.close)
        self._timer.daemon = True
        self._lock = Lock()
        self._sockets: list[socket.socket] = []

    def __enter__(self) -> Self:
        """Start the time limit."""
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        with self._lock:
            for connection in self._sockets:
                connection.close()
            self._sockets.clear()

    def connect(self, host: str, port: int, policy: AddressPolicy = AddressPolicy.ANY) -> socket.socket:
        """Connect to one of the host's addresses. Raises `OSError`, also if `policy` does not allow an address."""
        last_error: OSError | None = None
        # A host name may have thousands of addresses that don't answer.
        for *_, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            self.check()
            # Check and connect to the same address, because a second lookup may return another address.
            check_address(str(address[0]), host, policy)
            try:
                return self._track(socket.create_connection((str(address[0]), port), CONNECT_SECONDS))
            except OSError as error:
                last_error = error
        raise last_error or OSError(f"{host} has no address")

    def close(self) -> None:
        """Close all connections, including later connections. Readers get the end of the stream."""
        with self._lock:
            self.is_closed = True
            for connection in self._sockets:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def check(self) -> None:
        """Raise `ConnectionsClosed` if the connections are closed."""
        if self.is_closed:
            raise ConnectionsClosed("the time limit is exceeded, or the caller has closed the connections")

    def _track(self, connection: socket.socket) -> socket.socket:
        with self._lock:
            if self.is_closed:
                connection.close()
            self.check()
            # Keep a duplicate, because TLS takes over the descriptor of the returned socket.
            self._sockets.append(connection.dup())
        return connection
