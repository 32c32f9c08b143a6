"""Connections to one host with a total time limit."""

from __future__ import annotations

import socket
from contextlib import suppress
from threading import Lock, Timer
from typing import Self

from muster.storage.git.address_policy import AddressPolicy, check_address

CONNECT_SECONDS = 20.0
"""The time limit for connecting to one of a host's addresses, and for the TLS handshake."""


class ConnectionsClosed(OSError):
    """The connections were closed by the time limit or by the caller."""


class TimedConnections:
    """Connections of one thread, closed after `seconds`, or when another thread calls `close`.

    A socket's timeout limits only the wait for the next bytes: a host that sends one byte a minute never exceeds it.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.is_cut = False
        self._timer = Timer(seconds, self.close)
        self._timer.daemon = True
        self._lock = Lock()
        self._ends: list[socket.socket] = []

    def __enter__(self) -> Self:
        """Start the time limit."""
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        with self._lock:
            for end in self._ends:
                end.close()
            self._ends.clear()

    def connect(self, host: str, port: int, policy: AddressPolicy = AddressPolicy.ANY) -> socket.socket:
        """Connect to one of the host's addresses, each of which `policy` must allow. Raises `OSError`."""
        failed: OSError | None = None
        # a name may have thousands of addresses that don't answer
        for *_, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            self.check()
            # check the address that is connected, because a second lookup may return another one
            check_address(str(address[0]), host, policy)
            try:
                return self._track(socket.create_connection((str(address[0]), port), CONNECT_SECONDS))
            except OSError as error:
                failed = error
        raise failed or OSError(f"{host} has no address")

    def close(self) -> None:
        """Close all connections, including later ones; readers get the end of the stream."""
        with self._lock:
            self.is_cut = True
            for end in self._ends:
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def check(self) -> None:
        """Raise `ConnectionsClosed` if the connections are closed."""
        if self.is_cut:
            raise ConnectionsClosed("the time limit is exceeded")

    def _track(self, connection: socket.socket) -> socket.socket:
        with self._lock:
            if self.is_cut:
                connection.close()
            self.check()
            # a duplicate, because TLS takes over the descriptor of the returned socket
            self._ends.append(connection.dup())
        return connection
