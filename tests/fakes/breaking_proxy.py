"""A proxy in front of an HTTP server that interrupts some answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler
from threading import Lock
from urllib.parse import urlsplit

from fakes.http_site import http_site


class BreakingProxy:
    """Interrupts the next `cuts` large answers."""

    def __init__(self) -> None:
        self.url = ""
        self.cuts = 0
        self._lock = Lock()

    def may_cut(self, size: int) -> bool:
        with self._lock:
            if self.cuts == 0 or size < 1000:
                return False
            self.cuts -= 1
            return True


@contextmanager
def breaking_proxy(upstream: str) -> Iterator[BreakingProxy]:
    """Yield a proxy in front of `upstream`."""
    proxy, place = BreakingProxy(), urlsplit(upstream)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            connection = HTTPConnection(place.netloc, timeout=30)
            try:
                connection.request("GET", self.path, headers={**self.headers, "Host": self.headers["Host"]})
                answer = connection.getresponse()
                body = answer.read()
            finally:
                connection.close()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if proxy.may_cut(len(body)):
                self.wfile.write(body[: len(body) // 2])
                self.close_connection = True
                return
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with http_site(Handler) as proxy.url:
        yield proxy
