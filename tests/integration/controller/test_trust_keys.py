"""The cluster's keys for tokens change while the operator runs."""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from aiohttp import web

from fakes.api_client import api_client
from muster.collector.server.refusal import RequestRefused
from muster.collector.trust.tokens import LocalTokenIssuer, PodClaim
from muster.controller.trust import trust as under_test
from muster.controller.trust.trust import TrustError, TrustManager, TrustSettings
from muster_worker.contract.schema import TOKEN_AUDIENCE

ISSUER = "https://issuer.test"
POD = PodClaim("default", "digits-0", "uid-0")


class Server:
    """An API server with keys, and with what is needed to store a Secret."""

    def __init__(self) -> None:
        self.discovery = json.dumps({"issuer": ISSUER})
        self.keys = "{}"
        self.status = 200
        self.asked = asyncio.Condition()
        self.times = 0

    async def serve_keys(self, _: web.Request) -> web.Response:
        async with self.asked:
            self.times += 1
            self.asked.notify_all()
        return web.Response(text=self.keys, status=self.status)

    async def until_asked(self, times: int) -> None:
        async with asyncio.timeout(60.0), self.asked:
            await self.asked.wait_for(lambda: self.times >= times)


@contextlib.asynccontextmanager
async def served(server: Server, folder: Path) -> AsyncIterator[TrustManager]:
    app = web.Application()
    app.router.add_get("/.well-known/openid-configuration", _answer(lambda: server.discovery))
    app.router.add_get("/openid/v1/jwks", server.serve_keys)
    app.router.add_get("/api/v1/namespaces/muster/secrets/trust", _answer(lambda: "{}", 404))
    app.router.add_post("/api/v1/namespaces/muster/secrets", _answer(lambda: "{}", 201))
    async with api_client(app, folder) as client:
        yield TrustManager(client, TrustSettings("muster", "trust", ["localhost"]), lambda _: None, time.time)


def _answer(text: Callable[[], str], status: int = 200) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(text=text(), status=status, content_type="application/json")

    return answer


def is_believed(trust: TrustManager, issuer: LocalTokenIssuer) -> bool:
    try:
        return trust.verifier.verify(issuer.issue(POD, time.time(), 600.0), time.time()) == POD
    except RequestRefused:
        return False


async def test_a_token_of_an_unknown_key_makes_muster_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(under_test, "MIN_KEY_REFRESH_SECONDS", 0.01)
    server, old, new = Server(), LocalTokenIssuer(ISSUER, TOKEN_AUDIENCE), LocalTokenIssuer(ISSUER, TOKEN_AUDIENCE)
    server.keys = old.make_jwks()
    async with served(server, tmp_path) as trust:
        await trust.start()
        running = asyncio.create_task(trust.run())
        assert is_believed(trust, old)

        # errors or invalid answers of the API server remove no key
        for server.status, server.keys in ((500, "{}"), (200, "junk")):
            asked = server.times
            assert not is_believed(trust, new)
            await server.until_asked(asked + 1)
            assert is_believed(trust, old)

        server.status, server.keys = 200, new.make_jwks()
        async with asyncio.timeout(60.0):
            while not is_believed(trust, new):  # noqa: ASYNC110 - the verifier has no event to await
                await asyncio.sleep(0.01)
        assert not is_believed(trust, old)
        running.cancel()


async def test_many_tokens_of_unknown_keys_make_it_look_once(tmp_path: Path) -> None:
    server, issuer, stranger = (
        Server(),
        LocalTokenIssuer(ISSUER, TOKEN_AUDIENCE),
        LocalTokenIssuer(ISSUER, TOKEN_AUDIENCE),
    )
    server.keys = issuer.make_jwks()
    async with served(server, tmp_path) as trust:
        await trust.start()
        running = asyncio.create_task(trust.run())
        for _ in range(20):
            assert not is_believed(trust, stranger)
            await asyncio.sleep(0.01)
        assert server.times == 1  # at its start
        running.cancel()


async def test_keys_are_looked_at_without_a_cause_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(under_test, "MIN_KEY_REFRESH_SECONDS", 0.01)
    monkeypatch.setattr(under_test, "KEY_REFRESH_SECONDS", 0.05)
    server, issuer = Server(), LocalTokenIssuer(ISSUER, TOKEN_AUDIENCE)
    server.keys = issuer.make_jwks()
    async with served(server, tmp_path) as trust:
        await trust.start()
        running = asyncio.create_task(trust.run())

        await server.until_asked(3)
        running.cancel()


@pytest.mark.parametrize("discovery", ["junk", "[]", "{}", '{"issuer": 1}'])
async def test_a_cluster_that_names_no_issuer_is_said(tmp_path: Path, discovery: str) -> None:
    server = Server()
    server.keys, server.discovery = LocalTokenIssuer(ISSUER, TOKEN_AUDIENCE).make_jwks(), discovery
    async with served(server, tmp_path) as trust:
        with pytest.raises(TrustError, match="has no issuer"):
            await trust.start()
