"""HTTP that asks one host and no other, wherever that one's answers point to."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import urllib3
from dulwich.client import default_urllib3_manager
from urllib3.connection import HTTPConnection, HTTPSConnection

from muster.api.document import quoted
from muster.storage.line import Line


class LeadsElsewhere(Exception):
    """An answer points to another place than the one that was asked for."""


@contextmanager
def pool_for(url: str, line: Line) -> Iterator[urllib3.PoolManager]:
    """What asks the host of `url` over `line`, through the proxy that the environment names.

    Redirects raise `LeadsElsewhere`.
    """
    pool = default_urllib3_manager(None, base_url=url, pool_manager_cls=_OneHost, proxy_manager_cls=_OneHostByProxy)
    if not isinstance(pool, _OneHost):
        raise TypeError(f"dulwich made a {type(pool).__name__}")
    pool.origin, pool.answers = _origin(url), []
    pool.pool_classes_by_scheme = _pools_over(line)
    try:
        yield pool
    finally:
        # dulwich leaves those open that tell of an error
        for answer in pool.answers:
            answer.close()
        pool.clear()


def _pools_over(line: Line) -> dict[str, type[urllib3.HTTPConnectionPool]]:
    class Plain(HTTPConnection):
        def _new_conn(self) -> socket.socket:
            return line.dial(self.host, self.port)

    class Secure(HTTPSConnection):
        def _new_conn(self) -> socket.socket:
            return line.dial(self.host, self.port)

    class PlainPool(urllib3.HTTPConnectionPool):
        ConnectionCls = Plain

    class SecurePool(urllib3.HTTPSConnectionPool):
        ConnectionCls = Secure

    return {"http": PlainPool, "https": SecurePool}


class _OneHost(urllib3.PoolManager):
    origin: tuple[str, str]
    answers: list[urllib3.BaseHTTPResponse]

    def urlopen(self, method: str, url: str, redirect: bool = True, **kw: Any) -> urllib3.BaseHTTPResponse:  # type: ignore[override]  # noqa: ARG002, FBT001, FBT002 - urllib3's own
        if _origin(url) != self.origin:
            raise LeadsElsewhere(f"it leads to another host, {quoted(urlsplit(url).netloc)}")
        answer = super().urlopen(method, url, redirect=False, **kw)
        self.answers.append(answer)
        place = answer.get_redirect_location()
        if place:
            raise LeadsElsewhere(f"it leads to {quoted(str(place))}; name that address if it is the right one")
        return answer


class _OneHostByProxy(_OneHost, urllib3.ProxyManager):
    pass


def _origin(url: str) -> tuple[str, str]:
    address = urlsplit(url)
    return address.scheme, address.netloc
