"""Who may read the board."""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlsplit

from aiohttp import web

from muster.cli.web.source import JobSource

_SCHEME = "Bearer "


@dataclass(frozen=True)
class Reader:
    """Who sent a request, and the jobs that they may see. `name` is for limits only."""

    name: str
    jobs: JobSource


class Access(Protocol):
    """Decides about requests."""

    async def authenticate(self, request: web.Request) -> Reader:
        """Return who sent the request. Raises `web.HTTPException`."""
        ...


@dataclass(frozen=True)
class TokenAccess:
    """Access on this machine with a random token, which another user of the machine can't guess."""

    jobs: JobSource
    token: str

    async def authenticate(self, request: web.Request) -> Reader:
        """Compare the token. Raises `web.HTTPUnauthorized`."""
        # compare_digest takes ASCII text or bytes
        if not hmac.compare_digest(read_bearer_token(request).encode("utf-8", "surrogateescape"), self.token.encode()):
            raise web.HTTPUnauthorized(text="open the URL that muster board has printed: it has the token\n")
        return Reader("", self.jobs)


def make_token() -> str:
    """Return a new random token."""
    return secrets.token_urlsafe(32)


def read_bearer_token(request: web.BaseRequest) -> str:
    """Return the token of the request; "" without one."""
    header = request.headers.get("Authorization", "")
    return header.removeprefix(_SCHEME).strip() if header.startswith(_SCHEME) else ""


@dataclass(frozen=True)
class Hosts:
    """The names under which browsers reach the server. `port` None: any port, as chosen for a tunnel.

    A page of another site can make its own name resolve to 127.0.0.1 (DNS rebinding). The browser then sends that name.
    """

    port: int | None
    names: tuple[str, ...] = ("127.0.0.1", "localhost")

    def check(self, request: web.BaseRequest) -> None:
        """Raise `web.HTTPMisdirectedRequest` for another name, `web.HTTPForbidden` for a page of another origin."""
        host = request.headers.get("Host", "")
        name, _, port = host.rpartition(":") if host.rpartition(":")[2].isdecimal() else (host, "", "")
        if name not in self.names or (self.port is not None and port != str(self.port)):
            suffix = "" if self.port is None else f":{self.port}"
            allowed = " or ".join(f"{each}{suffix}" for each in self.names)
            raise web.HTTPMisdirectedRequest(text=f"the host must be {allowed}\n")
        origin = request.headers.get("Origin")
        if origin is not None and urlsplit(origin).netloc != host:
            raise web.HTTPForbidden(text="the board answers only requests of its own page\n")


def check_read_only(request: web.BaseRequest) -> None:
    """Raise `web.HTTPRequestEntityTooLarge` for a request with a body: no request of the page has one."""
    if request.can_read_body or request.content_length:
        raise web.HTTPRequestEntityTooLarge(0, 0, text="a request must not have a body\n")
