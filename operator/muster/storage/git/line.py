"""Connections to one host that end at a time, whatever the host does."""

from __future__ import annotations

import socket
from contextlib import suppress
from threading import Lock, Timer
from typing import Self

from muster.storage.git.reach import Reach, check_address

CONNECT_SECONDS = 20.0
"""For one of a host's addresses, and for agreeing on TLS."""


class LineCut(OSError):
    """The time was over, or whoever listened has gone."""


class Line:
    """Used by one thread, and cut by `seconds` of time or by another thread.

    A time limit of a socket is one for its next bytes: who sends one of them a minute never reaches it.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.is_cut = False
        self._timer = Timer(seconds, self.cut)
        self._timer.daemon = True
        self._lock = Lock()
        self._ends: list[socket.socket] = []

    def __enter__(self) -> Self:
        """The time begins."""
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        with self._lock:
            for end in self._ends:
                end.close()
            self._ends.clear()

    def dial(self, host: str, port: int, reach: Reach = Reach.ANY) -> socket.socket:
        """A connection to one of the host's addresses, each of which `reach` allows. Raises `OSError`."""
        failed: OSError | None = None
        # a name may have thousands of them, of which none answers
        for *_, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            self.check()
            # here and not before: what is asked for a second time may be answered otherwise
            check_address(str(address[0]), host, reach)
            try:
                return self._watched(socket.create_connection((str(address[0]), port), CONNECT_SECONDS))
            except OSError as error:
                failed = error
        raise failed or OSError(f"{host} has no address")

    def cut(self) -> None:
        """End all connections, also those to come: who reads from one finds its end."""
        with self._lock:
            self.is_cut = True
            for end in self._ends:
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def check(self) -> None:
        """Raises `LineCut` once it is cut."""
        if self.is_cut:
            raise LineCut("the time is over")

    def _watched(self, connection: socket.socket) -> socket.socket:
        with self._lock:
            if self.is_cut:
                connection.close()
            self.check()
            # of its own: TLS takes the descriptor of the one that is handed out
            self._ends.append(connection.dup())
        return connection
