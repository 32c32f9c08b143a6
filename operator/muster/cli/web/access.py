"""Who may read the board: on this machine, who has the token of the printed URL."""

from __future__ import annotations

import hmac
import secrets
from typing import Protocol

from aiohttp import web

_SCHEME = "Bearer "


class Access(Protocol):
    """Decides about requests."""

    def check(self, request: web.BaseRequest) -> None:
        """Return if the request may read the jobs. Raises `web.HTTPException`."""
        ...


class TokenAccess:
    """Access with a random token, which another user of the machine can't guess."""

    def __init__(self) -> None:
        self.token = secrets.token_urlsafe(32)

    def check(self, request: web.BaseRequest) -> None:
        """Compare the token. Raises `web.HTTPUnauthorized`."""
        header = request.headers.get("Authorization", "")
        token = header.removeprefix(_SCHEME) if header.startswith(_SCHEME) else ""
        # compare_digest takes ASCII text or bytes
        if not hmac.compare_digest(token.encode("utf-8", "surrogateescape"), self.token.encode()):
            raise web.HTTPUnauthorized(text="open the URL that muster board has printed: it has the token\n")


def check_host(request: web.BaseRequest, port: int) -> None:
    """Raise `web.HTTPMisdirectedRequest` for another host name than this machine's own.

    A page of another site can make its own name resolve to 127.0.0.1 (DNS rebinding). The browser then sends that name.
    """
    allowed = (f"127.0.0.1:{port}", f"localhost:{port}")
    if request.headers.get("Host", "") not in allowed:
        raise web.HTTPMisdirectedRequest(text=f"the host must be {' or '.join(allowed)}\n")
