"""A host that accepts connections, sends a beginning, and continues byte by byte or without an end."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread

DRIP_SECONDS = 0.02


class SlowHost:
    """`left` is set once a client has closed a connection; `sent` counts the bytes."""

    def __init__(self, port: int) -> None:
        self.netloc = f"127.0.0.1:{port}"
        self.asked = Event()
        self.left = Event()
        self.sent = 0


@contextmanager
def slow_host(first: bytes, then: bytes) -> Iterator[SlowHost]:
    """Send `first` to every client, then `then` repeatedly: a single byte slowly, more at full speed."""
    stop = Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        host = SlowHost(listener.getsockname()[1])

        def talk(guest: socket.socket) -> None:
            with guest, suppress(OSError):
                guest.settimeout(10)
                guest.recv(2**16)
                host.asked.set()
                guest.sendall(first)
                while not stop.wait(DRIP_SECONDS if len(then) <= 1 else 0):
                    if not then and not guest.recv(2**16):
                        break
                    guest.sendall(then)
                    host.sent += len(then)
            host.left.set()

        def serve() -> None:
            with suppress(OSError):
                while True:
                    Thread(target=talk, args=(listener.accept()[0],), daemon=True).start()

        thread = Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield host
        finally:
            stop.set()
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
