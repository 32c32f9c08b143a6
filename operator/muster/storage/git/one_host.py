"""HTTP requests to one host only: redirects to other hosts fail."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

import urllib3
from dulwich.client import default_urllib3_manager
from urllib3.connection import HTTPConnection, HTTPSConnection

from muster.api.document import quoted
from muster.storage.git.line import Line
from muster.storage.git.reach import Reach, check_address


class RedirectRefused(Exception):
    """A response redirects to another URL."""


@contextmanager
def pool_for(url: str, line: Line, reach: Reach = Reach.ANY) -> Iterator[urllib3.PoolManager]:
    """A pool for the host of `url` over `line`, at an address that `reach` allows, or through the environment's proxy.

    Redirects raise `RedirectRefused`. A proxy resolves names itself: with a proxy, only an address in the URL is
    checked. Raises `AddressRefused`.
    """
    pool = default_urllib3_manager(None, base_url=url, pool_manager_cls=_OneHost, proxy_manager_cls=_OneHostByProxy)
    if not isinstance(pool, _OneHost):
        raise TypeError(f"dulwich made a {type(pool).__name__}")
    pool.origin, pool.answers = _origin(url), []
    if isinstance(pool, _OneHostByProxy):
        _check_literal(url, reach)
        reach = Reach.ANY
    pool.pool_classes_by_scheme = _pools_over(line, reach)
    try:
        yield pool
    finally:
        # dulwich leaves error responses open
        for answer in pool.answers:
            answer.close()
        pool.clear()


def _pools_over(line: Line, reach: Reach) -> dict[str, type[urllib3.HTTPConnectionPool]]:
    class Plain(HTTPConnection):
        def _new_conn(self) -> socket.socket:
            return line.dial(self.host, self.port, reach)

    class Secure(HTTPSConnection):
        def _new_conn(self) -> socket.socket:
            return line.dial(self.host, self.port, reach)

    class PlainPool(urllib3.HTTPConnectionPool):
        ConnectionCls = Plain

    class SecurePool(urllib3.HTTPSConnectionPool):
        ConnectionCls = Secure

    return {"http": PlainPool, "https": SecurePool}


def _check_literal(url: str, reach: Reach) -> None:
    host = urlsplit(url).hostname or ""
    with suppress(ValueError):
        check_address(host, host, reach)


class _OneHost(urllib3.PoolManager):
    origin: tuple[str, str]
    answers: list[urllib3.BaseHTTPResponse]

    def urlopen(self, method: str, url: str, redirect: bool = True, **kw: Any) -> urllib3.BaseHTTPResponse:  # type: ignore[override]  # noqa: ARG002, FBT001, FBT002 - urllib3's own
        if _origin(url) != self.origin:
            raise RedirectRefused(f"it redirects to another host, {quoted(urlsplit(url).netloc)}")
        answer = super().urlopen(method, url, redirect=False, **kw)
        self.answers.append(answer)
        place = answer.get_redirect_location()
        if place:
            raise RedirectRefused(f"it redirects to {quoted(str(place))}; use that URL if it is the right one")
        return answer


class _OneHostByProxy(_OneHost, urllib3.ProxyManager):
    pass


def _origin(url: str) -> tuple[str, str]:
    address = urlsplit(url)
    return address.scheme, address.netloc
