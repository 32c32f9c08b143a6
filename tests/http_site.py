"""A web server in a thread of this process, for tests' stand-ins of services."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


@contextmanager
def http_site(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """Serve on a port of this machine; its URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    # whoever keeps a connection open must not keep the test from ending
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
