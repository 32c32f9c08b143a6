"""A web server in a thread of this process, for the tests' fake services."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


@dataclass(frozen=True)
class At:
    """An address of this machine; HTTPS if `tls` is set."""

    host: str = "127.0.0.1"
    tls: ssl.SSLContext | None = None


HERE = At()


@contextmanager
def http_site(handler: type[BaseHTTPRequestHandler], at: At = HERE) -> Iterator[str]:
    """Serve on a port of this machine; yield the URL."""
    server = ThreadingHTTPServer((at.host, 0), handler)
    if at.tls is not None:
        server.socket = at.tls.wrap_socket(server.socket, server_side=True)
    # an open connection must not block the end of the test
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"{'http' if at.tls is None else 'https'}://{at.host}:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
