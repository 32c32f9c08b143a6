"""Send HTTP requests to one host only, and reject redirects."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

import urllib3
from dulwich.client import default_urllib3_manager
from urllib3.connection import HTTPConnection, HTTPSConnection

from muster.api.document import quote
from muster.storage.git.address_policy import AddressPolicy, check_address
from muster.storage.git.connections import TimedConnections


class RedirectRefused(Exception):
    """A response of the host redirects to another URL."""


@contextmanager
def open_pool(
    url: str, connections: TimedConnections, policy: AddressPolicy = AddressPolicy.ANY
) -> Iterator[urllib3.PoolManager]:
    """Open a pool for the host of `url`, which connects to addresses that `policy` allows, or to a proxy.

    The environment sets the proxy. A proxy resolves host names itself, so muster then checks only an IP address in
    `url`. Raises `AddressRefused`. Redirects raise `RedirectRefused`.
    """
    pool = default_urllib3_manager(
        None, base_url=url, pool_manager_cls=_SingleHostPool, proxy_manager_cls=_SingleHostProxyPool
    )
    if not isinstance(pool, _SingleHostPool):
        raise TypeError(f"dulwich created a {type(pool).__name__}")
    pool.origin, pool.responses = _get_origin(url), []
    if isinstance(pool, _SingleHostProxyPool):
        _check_literal(url, policy)
        policy = AddressPolicy.ANY
    pool.pool_classes_by_scheme = _make_pool_classes(connections, policy)
    try:
        yield pool
    finally:
        # dulwich does not close error responses.
        for response in pool.responses:
            response.close()
        pool.clear()


def _make_pool_classes(
    connections: TimedConnections, policy: AddressPolicy
) -> dict[str, type[urllib3.HTTPConnectionPool]]:
    class Plain(HTTPConnection):
        def _new_conn(self) -> socket.socket:
            return connections.connect(self.host, self.port, policy)

    class Secure(HTTPSConnection):
        def _new_conn(self) -> socket.socket:
            return connections.connect(self.host, self.port, policy)

    class PlainPool(urllib3.HTTPConnectionPool):
        ConnectionCls = Plain

    class SecurePool(urllib3.HTTPSConnectionPool):
        ConnectionCls = Secure

    return {"http": PlainPool, "https": SecurePool}


def _check_literal(url: str, policy: AddressPolicy) -> None:
    host = urlsplit(url).hostname or ""
    with suppress(ValueError):
        check_address(host, host, policy)


class _SingleHostPool(urllib3.PoolManager):
    origin: tuple[str, str]
    responses: list[urllib3.BaseHTTPResponse]

    def urlopen(self, method: str, url: str, redirect: bool = True, **kw: Any) -> urllib3.BaseHTTPResponse:  # type: ignore[override]  # noqa: ARG002, FBT001, FBT002 - urllib3's own
        if _get_origin(url) != self.origin:
            raise RedirectRefused(f"the host redirects to another host, {quote(urlsplit(url).netloc)}")
        response = super().urlopen(method, url, redirect=False, **kw)
        self.responses.append(response)
        location = response.get_redirect_location()
        if location:
            raise RedirectRefused(f"the host redirects to {quote(str(location))}; use that URL if it is correct")
        return response


class _SingleHostProxyPool(_SingleHostPool, urllib3.ProxyManager):
    pass


def _get_origin(url: str) -> tuple[str, str]:
    address = urlsplit(url)
    return address.scheme, address.netloc
