"""Admit readers with a token to the board of a cluster. What a reader sees depends on the reader's rights."""

from __future__ import annotations

from dataclasses import dataclass

from aiohttp import web

from muster.cli.web.access import Reader, read_bearer_token
from muster.cli.web.served.authorized_jobs import AuthorizedJobs, Board
from muster.cli.web.served.connections import BoardConnection
from muster.cli.web.served.reviewer import ReviewFailed

_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="muster-board"'}
"""The page asks for a token if an answer has it."""


@dataclass(frozen=True)
class ReviewAccess:
    """Access with a token that the API server accepts."""

    board: Board

    async def authenticate(self, request: web.Request) -> Reader:
        """Ask the API server about the token. Raises `web.HTTPException`."""
        token = read_bearer_token(request)
        try:
            user = await self.board.reviewer.authenticate(token)
        except ReviewFailed as error:
            raise web.HTTPServiceUnavailable(text=f"{error}\n", headers={"Retry-After": "1"}) from None
        if user is None:
            what = "the token is not valid, or has expired" if token else "enter a token of the cluster"
            raise web.HTTPUnauthorized(text=f"{what}\n", headers=_CHALLENGE)
        if isinstance(request.protocol, BoardConnection) and not request.protocol.admit(user.username):
            raise web.HTTPServiceUnavailable(text="you have too many connections: close some pages\n")
        return Reader(user.username, AuthorizedJobs(self.board, token, request.query.get("namespace", "")))
