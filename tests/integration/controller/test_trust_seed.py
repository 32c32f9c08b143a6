"""The seed of the gangs' credentials and the collector's authorities are in a Secret, which all replicas share."""

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from fakes.api_client import api_client
from muster.clients.kubernetes.client import Client
from muster.collector.trust.attempt_credentials import SEED_BYTES
from muster.collector.trust.authorities import AUTHORITY_SECONDS, SERVING_SECONDS
from muster.collector.trust.certificate import ServingCertificate
from muster.collector.trust.tokens import LocalTokenIssuer
from muster.controller.trust.trust import TrustError, TrustManager, TrustSettings
from muster_worker.contract.schema import TOKEN_AUDIENCE
from support.clock import Clock

NAME = "https://issuer.test"
ISSUER = LocalTokenIssuer(NAME, TOKEN_AUDIENCE)
SECRETS = "/api/v1/namespaces/muster/secrets"


class Server:
    """An API server that stores one Secret, and refuses writes to an outdated version."""

    def __init__(self) -> None:
        self.secret: dict[str, object] | None = None
        self.version = 0

    @property
    def data(self) -> dict[str, str]:
        assert self.secret is not None
        data = self.secret["data"]
        assert isinstance(data, dict)
        return data

    def keep(self, secret: dict[str, object]) -> web.Response:
        self.version += 1
        self.secret = {**secret, "metadata": {"name": "trust", "resourceVersion": str(self.version)}}
        return web.json_response(self.secret)

    async def get(self, _: web.Request) -> web.Response:
        return _failure(404) if self.secret is None else web.json_response(self.secret)

    async def post(self, request: web.Request) -> web.Response:
        return self.keep(await request.json()) if self.secret is None else _failure(409, "AlreadyExists")

    async def put(self, request: web.Request) -> web.Response:
        sent = await request.json()
        current = sent["metadata"]["resourceVersion"] == str(self.version)
        return self.keep(sent) if current else _failure(409, "Conflict")


def _failure(status: int, reason: str = "NotFound") -> web.Response:
    return web.json_response({"kind": "Status", "code": status, "reason": reason}, status=status)


async def _discovery(_: web.Request) -> web.Response:
    return web.json_response({"issuer": NAME})


async def _keys(_: web.Request) -> web.Response:
    return web.Response(text=ISSUER.make_jwks())


@contextlib.asynccontextmanager
async def served(server: Server, folder: Path) -> AsyncIterator[Client]:
    app = web.Application()
    app.router.add_get("/.well-known/openid-configuration", _discovery)
    app.router.add_get("/openid/v1/jwks", _keys)
    app.router.add_get(f"{SECRETS}/trust", server.get)
    app.router.add_post(SECRETS, server.post)
    app.router.add_put(f"{SECRETS}/trust", server.put)
    async with api_client(app, folder) as client:
        yield client


def replica(client: Client, clock: Clock) -> TrustManager:
    return TrustManager(client, TrustSettings("muster", "trust", ["collector"]), lambda _: None, clock)


async def test_all_replicas_have_the_same_and_keep_it(tmp_path: Path) -> None:
    server, clock = Server(), Clock()
    async with served(server, tmp_path) as client:
        together = [replica(client, clock) for _ in range(3)]
        await asyncio.gather(*(one.start() for one in together))
        (seed,) = {one.get_seed() for one in together}
        assert len(seed) == SEED_BYTES

        clock.now += AUTHORITY_SECONDS * 0.7
        await together[0].renew_if_due()
        later = replica(client, clock)
        await later.start()

        assert later.get_seed() == seed
        assert base64.b64decode(server.data["gang-seed"]) == seed
        assert seed.hex() not in repr(together[0])
        assert repr(seed) not in repr(together[0])


async def test_a_secret_of_an_earlier_release_gets_one(tmp_path: Path) -> None:
    server, clock = Server(), Clock()
    async with served(server, tmp_path) as client:
        first = replica(client, clock)
        await first.start()
        authorities = server.data["authorities.json"]
        del server.data["gang-seed"]

        # a replica that has the seed writes it back; a later one reads it
        await first.renew_if_due()
        second = replica(client, clock)
        await second.start()
        assert second.get_seed() == first.get_seed()

        del server.data["gang-seed"]
        third = replica(client, clock)
        await third.start()
        assert len(third.get_seed()) == SEED_BYTES
        assert server.data["authorities.json"] == authorities


@pytest.mark.parametrize(
    ("key", "entry", "problem"),
    [
        ("gang-seed", "c2hvcnQ=", "it has 5 bytes, not 32"),
        ("gang-seed", "?", "it is not UTF-8 text in base64"),
        ("authorities.json", "anVuaw==", "it is not JSON"),
        ("authorities.json", "/w==", "it is not UTF-8"),
    ],
)
async def test_a_damaged_entry_is_said_and_left_alone(tmp_path: Path, key: str, entry: str, problem: str) -> None:
    server, clock = Server(), Clock()
    async with served(server, tmp_path) as client:
        await replica(client, clock).start()
        server.data[key] = entry

        with pytest.raises(TrustError, match=f"Secret muster/trust: {key}: {problem}.*; delete the Secret"):
            await replica(client, clock).start()

        assert server.data[key] == entry


async def test_a_serving_certificate_is_renewed_once_a_third_of_its_life_is_left(tmp_path: Path) -> None:
    server, clock, shown = Server(), Clock(), list[ServingCertificate]()
    async with served(server, tmp_path) as client:
        trust = TrustManager(client, TrustSettings("muster", "trust", ["collector"]), shown.append, clock)
        await trust.start()
        for share, renewals in ((0.6, 0), (0.1, 1)):
            clock.now += SERVING_SECONDS * share
            await trust.renew_if_due()
            await trust.renew_if_due()
            assert len(shown) == renewals
