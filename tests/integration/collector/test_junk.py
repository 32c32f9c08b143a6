"""Invalid input for the collector: it refuses and counts each piece, and changes nothing."""

import asyncio
import contextlib
import io
import json
import os
import ssl
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from integration.collector.collector_site import ISSUER, JOB, NODES, Site, claim, collector_site, pod_uid, until
from muster.collector.pod_directory import PodIdentity
from muster.collector.server.connection_limits import ConnectionLimits
from muster.collector.server.cpu_budgets import ADDRESS_RATE
from muster.collector.server.refusal import RefusalReason
from muster.collector.trust.tokens import LocalTokenIssuer
from muster.core.facts import AgentFacts
from muster_worker.contract.schema import TOKEN_AUDIENCE, AgentPhase, Command, CommandKind, RankReport, RankState

TEN_MIB = 10 * 1024 * 1024


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with collector_site() as running:
        status, _, _ = await running.post(running.report(0), running.token(0))
        assert status == 200
        yield running


def facts(site: Site) -> list[AgentFacts | None]:
    return [site.store.get_agent(JOB, node) for node in range(NODES)]


def forged(site: Site, **changes: Any) -> dict[str, Any]:
    claims: dict[str, Any] = jwt.decode(site.token(0), options={"verify_signature": False})
    return {**claims, **changes}


def header(site: Site) -> dict[str, Any]:
    return {"kid": jwt.get_unverified_header(site.token(0))["kid"]}


def other_issuer(site: Site) -> str:
    return LocalTokenIssuer(ISSUER, TOKEN_AUDIENCE).issue(claim(0), site.clock.now, 3600.0)


def other_issuer_with_our_key_id(site: Site) -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    return jwt.encode(forged(site), key, algorithm="ES256", headers=header(site))


def unsigned(site: Site) -> str:
    return jwt.encode(forged(site), "", algorithm="none", headers=header(site))


def signed_with_the_public_key(site: Site) -> str:
    public: Any = site.issuer._key.public_key()
    pem = public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    # PyJWT refuses to sign with a PEM text, an attacker doesn't
    first, second = (_base64(json.dumps(part)) for part in ({"alg": "HS256", **header(site)}, forged(site)))
    signature = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256).sign(
        f"{first}.{second}".encode(), pem
    )
    return f"{first}.{second}.{jwt.utils.base64url_encode(signature).decode()}"


def _base64(text: str) -> str:
    return jwt.utils.base64url_encode(text.encode()).decode()


def _ours(site: Site, claims: dict[str, Any]) -> str:
    return jwt.encode(claims, site.issuer._key, algorithm="ES256", headers=header(site))


TOKENS: dict[str, tuple[Callable[[Site], str | None], RefusalReason]] = {
    "none at all": (lambda _: None, RefusalReason.NO_TOKEN),
    "empty": (lambda _: "", RefusalReason.NO_TOKEN),
    "words": (lambda _: "let-me-in", RefusalReason.BAD_TOKEN),
    "dots": (lambda _: "..", RefusalReason.BAD_TOKEN),
    "long": (lambda _: "a" * 9000, RefusalReason.BAD_TOKEN),
    "deep": (lambda _: _base64("[" * 3000) + "." + _base64("[" * 1500) + ".x", RefusalReason.BAD_TOKEN),
    "expired": (lambda site: site.token(0, -120.0), RefusalReason.EXPIRED),
    "of the future": (lambda site: _ours(site, forged(site, nbf=site.clock.now + 600)), RefusalReason.EXPIRED),
    "without an end": (
        lambda site: _ours(site, {k: v for k, v in forged(site).items() if k != "exp"}),
        RefusalReason.BAD_TOKEN,
    ),
    "ends in words": (lambda site: _ours(site, forged(site, exp="never")), RefusalReason.BAD_TOKEN),
    "for the API server": (lambda site: _ours(site, forged(site, aud=["api"])), RefusalReason.WRONG_AUDIENCE),
    "for nobody": (
        lambda site: _ours(site, {k: v for k, v in forged(site).items() if k != "aud"}),
        RefusalReason.WRONG_AUDIENCE,
    ),
    "another issuer's name": (lambda site: _ours(site, forged(site, iss="https://evil")), RefusalReason.BAD_TOKEN),
    "of no pod": (
        lambda site: _ours(site, forged(site, **{"kubernetes.io": {"namespace": "x"}})),
        RefusalReason.BAD_TOKEN,
    ),
    "another issuer's key": (other_issuer, RefusalReason.BAD_TOKEN),
    "another key, our name for it": (other_issuer_with_our_key_id, RefusalReason.BAD_TOKEN),
    "alg none": (unsigned, RefusalReason.BAD_TOKEN),
    "HS256 with the public key": (signed_with_the_public_key, RefusalReason.BAD_TOKEN),
    "another pod's": (lambda site: site.token(1), RefusalReason.OTHER_POD),
}


@pytest.mark.parametrize("name", TOKENS)
async def test_a_bad_token_changes_nothing(site: Site, name: str) -> None:
    make, reason = TOKENS[name]
    before = facts(site)

    status, _, body = await site.post(site.report(0), make(site))

    assert status == (403 if reason is RefusalReason.OTHER_POD else 401)
    assert site.collector.refusal_counts == {reason: 1}
    assert facts(site) == before
    assert list(json.loads(body)) == ["error"]


@pytest.mark.parametrize(
    "name", [name for name, (_, reason) in TOKENS.items() if reason is not RefusalReason.OTHER_POD]
)
async def test_a_bad_token_gets_no_command(site: Site, name: str) -> None:
    make, reason = TOKENS[name]
    token = make(site)
    site.store.set_command(JOB, 0, Command(0, JOB, 1, CommandKind.START))
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}

    async with site.client.get(f"{site.url}/v1/command?wait=0", headers=headers) as answer:
        assert answer.status == 401
        assert list(await answer.json()) == ["error"]
    assert site.collector.refusal_counts == {reason: 1}


async def test_a_deleted_pods_token_changes_and_learns_nothing(site: Site) -> None:
    """It is valid until it expires: the collector accepts only tokens of existing pods."""
    token = site.token(0)
    site.store.set_command(JOB, 0, Command(0, JOB, 1, CommandKind.START))
    before = facts(site)
    del site.pods[pod_uid(0)]

    assert (await site.post(site.report(0, phase=AgentPhase.ENDED), token))[0] == 503
    assert (await site.poll(0, "wait=0"))[0] == 503

    assert site.collector.refusal_counts == {RefusalReason.UNKNOWN_POD: 2}
    assert facts(site) == before


async def test_a_replaced_pods_token_speaks_for_itself_only(site: Site) -> None:
    """The old pod still exists, like one on a disconnected node."""
    site.pods["pod-new"] = PodIdentity(JOB, 0, 1)
    site.store.reset_node(JOB, 0)
    fresh = site.issuer.issue(replace(claim(0), pod_uid="pod-new"), site.clock.now, 600.0)
    assert (await site.post(site.report(0, replacement=1), fresh))[0] == 200
    before = facts(site)

    assert (await site.post(site.report(0, replacement=1), site.token(0)))[0] == 403
    site.sequence, site.clock.now = 10**6, site.clock.now + 5.0
    assert (await site.post(site.report(0, phase=AgentPhase.ENDED), site.token(0)))[0] == 200
    assert facts(site) == before


def long_ago(rank: int) -> RankReport:
    return RankReport(rank, rank, RankState.EXITED, exit_code=1, ended_age=1e6)


BODIES: dict[str, tuple[Callable[[Site], bytes], int, RefusalReason]] = {
    "empty": (lambda _: b"", 400, RefusalReason.MALFORMED),
    "broken": (lambda site: site.report()[:-1], 400, RefusalReason.MALFORMED),
    "bad UTF-8": (lambda _: b'{"job_uid": "\xff"}', 400, RefusalReason.MALFORMED),
    "deep": (lambda _: b"[" * 500_000, 400, RefusalReason.MALFORMED),
    "deep objects": (lambda _: b'{"ranks":' * 50_000, 400, RefusalReason.MALFORMED),
    "NaN": (lambda site: site.report().replace(b'"step_age":0.1', b'"step_age":NaN'), 400, RefusalReason.MALFORMED),
    "infinite": (
        lambda site: site.report().replace(b'"step_age":0.1', b'"step_age":1e999'),
        400,
        RefusalReason.MALFORMED,
    ),
    "huge integer": (lambda s: s.report().replace(b'"step":3', b'"step":' + b"9" * 4000), 400, RefusalReason.MALFORMED),
    "too many digits": (
        lambda s: s.report().replace(b'"step":3', b'"step":' + b"9" * 60000),
        400,
        RefusalReason.MALFORMED,
    ),
    "unknown field": (lambda site: site.report().replace(b'"step":3', b'"stepp":3'), 400, RefusalReason.MALFORMED),
    "a list": (lambda _: b"[]", 400, RefusalReason.MALFORMED),
    "another job": (lambda site: site.report(job_uid="another"), 403, RefusalReason.OTHER_JOB),
    "another node": (lambda site: site.report(node=1), 403, RefusalReason.OTHER_POD),
    "another node's rank": (lambda s: s.report(ranks=(RankReport(9, 0, "Running"),)), 400, RefusalReason.IMPLAUSIBLE),
    "an end before the job": (lambda site: site.report(ranks=(long_ago(0),)), 400, RefusalReason.IMPLAUSIBLE),
}


@pytest.mark.parametrize("name", BODIES)
async def test_a_bad_body_changes_nothing(site: Site, name: str) -> None:
    make, status, reason = BODIES[name]
    before = facts(site)

    answered, _, body = await site.post(make(site), site.token(0))

    assert (answered, site.collector.refusal_counts) == (status, {reason: 1})
    assert facts(site) == before
    assert list(json.loads(body)) == ["error"]
    assert (await site.post(site.report(0), site.token(0)))[0] == 200


async def test_ten_mib_are_refused_by_their_length(site: Site) -> None:
    status, _, _ = await site.post(io.BytesIO(b" " * TEN_MIB), site.token(0))

    assert (status, site.collector.refusal_counts) == (413, {RefusalReason.TOO_LARGE: 1})


async def test_chunks_are_not_read(site: Site) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(TEN_MIB // 65536):
            yield b" " * 65536

    status, _, _ = await site.post(chunks(), site.token(0))

    assert (status, site.collector.refusal_counts) == (411, {RefusalReason.LENGTH_REQUIRED: 1})


async def test_a_compressed_body_is_not_inflated(site: Site) -> None:
    status, _, _ = await site.post(site.report(0), site.token(0), {"Content-Encoding": "gzip"})

    assert (status, site.collector.refusal_counts) == (415, {RefusalReason.COMPRESSED: 1})


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/"), ("GET", "/v1/report"), ("DELETE", "/v1/command"), ("PUT", "/x")]
)
async def test_there_is_nothing_else(site: Site, method: str, path: str) -> None:
    headers = {"Authorization": f"Bearer {site.token(0)}"}
    async with site.client.request(method, site.url + path, headers=headers) as answer:
        assert answer.status == 404
    async with site.client.request(method, site.url + path) as answer:
        assert answer.status == 401


async def test_a_good_pod_that_floods_is_slowed_and_then_heard_again(site: Site) -> None:
    token = site.token(0)
    answers = [(await site.post(b"junk", token))[0] for _ in range(150)]

    assert set(answers) == {400, 429}
    assert site.collector.refusal_counts[RefusalReason.TOO_FAST] == answers.count(429) > 40
    assert (await site.post(site.report(1), site.token(1)))[0] == 200
    site.clock.now += 1.0
    assert (await site.post(site.report(0), token))[0] == 200


async def test_a_flood_without_tokens_costs_no_signatures_and_keeps_no_pod_out(site: Site) -> None:
    token, bad = site.token(0), other_issuer_with_our_key_id(site)
    assert (await site.post(site.report(0), token))[0] == 200

    answers = [(await site.post(b"junk", bad))[0] for _ in range(80)]

    assert answers.count(401) == site.collector.refusal_counts[RefusalReason.BAD_TOKEN] == 50
    assert answers.count(429) == site.collector.refusal_counts[RefusalReason.TOO_FAST] == 30
    assert (await site.post(site.report(0), token))[0] == 200


@dataclass
class Raw:
    """A client that sends raw bytes."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def rest(self) -> bytes:
        """Return all data until the other side closes the connection."""
        try:
            async with asyncio.timeout(60.0):
                return await self.reader.read()
        except ConnectionError:
            return b""

    async def close(self) -> None:
        self.writer.close()
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            await self.writer.wait_closed()


async def connect(site: Site) -> Raw:
    return Raw(*await asyncio.open_connection(site.host, site.port, ssl=site.tls()))


QUICK = ConnectionLimits(
    authentication_seconds=0.3, handshake_seconds=0.3, body_seconds=0.3, unauthenticated_per_address=4, per_pod=2
)


@pytest.fixture
async def quick() -> AsyncIterator[Site]:
    async with collector_site(QUICK) as running:
        yield running


@pytest.mark.parametrize("sent", [b"", b"GET /v1/command HTTP/1.1\r\nHost: x\r\nX-Slow: "])
async def test_who_does_not_finish_its_headers_is_shown_out(quick: Site, sent: bytes) -> None:
    raw = await connect(quick)
    raw.writer.write(sent)

    assert await raw.rest() == b""
    assert quick.collector.refusal_counts == {RefusalReason.SILENT: 1}
    await until(lambda: quick.collector.open_connections == 0)
    await raw.close()


async def test_a_connection_that_never_begins_its_handshake_is_closed(quick: Site) -> None:
    raw = Raw(*await asyncio.open_connection(quick.host, quick.port))

    assert await raw.rest() == b""
    await until(lambda: quick.collector.open_connections == 0)
    assert sum(quick.collector.refusal_counts.values()) >= 1
    await raw.close()


async def test_no_tls_is_no_conversation(quick: Site) -> None:
    raw = Raw(*await asyncio.open_connection(quick.host, quick.port))
    raw.writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")

    await raw.rest()
    await until(lambda: quick.collector.refusal_counts == {RefusalReason.BAD_HANDSHAKE: 1})
    assert quick.collector.open_connections == 0
    await raw.close()


async def test_a_handshake_that_comes_too_late_does_not_begin() -> None:
    limits = ConnectionLimits(handshakes=1, handshake_seconds=0.3, handshake_wait_seconds=0.05)
    async with collector_site(limits) as site:
        busy = Raw(*await asyncio.open_connection(site.host, site.port))
        late = Raw(*await asyncio.open_connection(site.host, site.port))

        assert await late.rest() == b""
        assert site.collector.refusal_counts[RefusalReason.TOO_MANY_CONNECTIONS] == 1
        assert (await site.post(site.report(0), site.token(0)))[0] == 200
        for raw in (busy, late):
            await raw.close()


async def test_a_client_that_gives_up_before_its_handshake_is_removed() -> None:
    async with collector_site(ConnectionLimits(handshakes=1, handshake_seconds=0.3)) as site:
        busy = Raw(*await asyncio.open_connection(site.host, site.port))
        impatient = Raw(*await asyncio.open_connection(site.host, site.port))
        await impatient.close()

        assert (await site.post(site.report(0), site.token(0)))[0] == 200
        await until(lambda: site.collector.open_connections == 1)
        assert site.collector.refusal_counts[RefusalReason.BAD_HANDSHAKE] >= 1
        await busy.close()


async def test_strangers_of_one_address_have_few_places() -> None:
    async with collector_site(ConnectionLimits(unauthenticated_per_address=4)) as site:
        first = [await connect(site) for _ in range(4)]
        # the connection is reset, maybe before the client knows that it was accepted
        with contextlib.suppress(ConnectionError):
            late = Raw(*await asyncio.open_connection(site.host, site.port))
            assert await late.rest() == b""
            await late.close()

        assert site.collector.refusal_counts == {RefusalReason.TOO_MANY_CONNECTIONS: 1}
        for raw in first:
            await raw.close()


async def test_an_address_that_opened_too_many_connections_is_shown_out_at_once(site: Site) -> None:
    open_before = site.collector.open_connections
    site.collector._cpu.charge_accept("127.0.0.1", 1.0, asyncio.get_running_loop().time())
    # the connection is reset, maybe before the client knows that it was accepted
    with contextlib.suppress(ConnectionError):
        raw = Raw(*await asyncio.open_connection(site.host, site.port))
        assert await raw.rest() == b""
        await raw.close()
    assert site.collector.refusal_counts == {RefusalReason.TOO_BUSY: 1}

    another = Raw(*await asyncio.open_connection(site.host, site.port, ssl=site.tls(), local_addr=("127.0.0.2", 0)))
    await until(lambda: site.collector.open_connections == open_before + 1)
    await another.close()


async def test_connections_that_are_closed_at_once_are_charged_to_their_address(site: Site) -> None:
    cpu, clock = site.collector._cpu, asyncio.get_running_loop().time
    cpu.charge_accept("127.0.0.1", ADDRESS_RATE.burst / 2, clock())
    open_before, began_at = site.collector.open_connections, clock()
    before = cpu._addresses.get_balance("127.0.0.1", began_at)
    for _ in range(20):
        raw = Raw(*await asyncio.open_connection(site.host, site.port))
        await raw.close()
    await until(lambda: site.collector.open_connections == open_before)
    now = clock()
    uncharged = before + ADDRESS_RATE.per_second * (now - began_at)
    assert cpu._addresses.get_balance("127.0.0.1", now) < uncharged
    assert site.collector.refusal_counts == {RefusalReason.BAD_HANDSHAKE: 20}


async def test_a_pod_keeps_its_newest_connections() -> None:
    request = b"GET /v1/command?wait=0 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n"
    async with collector_site(ConnectionLimits(per_pod=2)) as site:
        raws = [await connect(site) for _ in range(3)]
        for raw in raws:
            raw.writer.write(request % site.token(0).encode())
            await raw.reader.readuntil(b"\r\n\r\n")

        assert await raws[0].rest() == b""
        assert site.collector.open_connections == 2
        for raw in raws:
            await raw.close()


@pytest.mark.parametrize(
    "sent",
    [
        b"\x00\x01\x02\r\n\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 1000 + b"\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
    ],
)
async def test_what_is_no_http_is_refused(site: Site, sent: bytes) -> None:
    raw = await connect(site)
    raw.writer.write(sent)

    answer = await raw.rest()

    assert answer.startswith(b"HTTP/1.0 400 ")
    assert b"Traceback" not in answer
    assert site.collector.refusal_counts == {RefusalReason.BAD_HTTP: 1}
    await raw.close()


async def test_a_broken_chunk_is_refused(site: Site) -> None:
    raw = await connect(site)
    head = f"POST /v1/report HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {site.token(0)}\r\n"
    raw.writer.write(head.encode() + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n")

    answer = await raw.rest()

    assert b" 400 " in answer.split(b"\r\n")[0]
    assert site.collector.refusal_counts == {RefusalReason.BAD_HTTP: 1}
    await raw.close()


async def test_a_body_that_drips_is_given_up(quick: Site) -> None:
    async def drops() -> AsyncIterator[bytes]:
        while True:
            yield b" "
            await asyncio.sleep(0.05)

    status, _, _ = await quick.post(drops(), quick.token(0), {"Content-Length": "1000"})

    assert (status, quick.collector.refusal_counts) == (408, {RefusalReason.TOO_SLOW: 1})


async def test_who_leaves_in_the_middle_of_a_body_leaves_nothing_behind(site: Site) -> None:
    before, connections = facts(site), site.collector.open_connections
    raw = await connect(site)
    raw.writer.write(
        f"POST /v1/report HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {site.token(0)}\r\n".encode()
        + b"Content-Length: 1000\r\n\r\n{"
    )
    await until(lambda: site.collector.open_connections == connections + 1)
    raw.writer.transport.abort()

    await until(lambda: site.collector.open_connections == connections)
    assert facts(site) == before


async def test_random_bytes_never_answer_five_hundred(site: Site) -> None:
    for _ in range(30):
        status, _, _ = await site.post(os.urandom(200), site.token(0))
        assert status == 400
