"""Pods with valid tokens and hostile behaviour: their cost for the collector, and the delay of other agents."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from integration.collector.collector_site import JOB, Site, claim, collector_site, pod_uid, until
from integration.collector.test_junk import Raw, connect
from muster.collector.pod_directory import PodIdentity
from muster.collector.server.bodies import MAX_BYTES_IN_FLIGHT
from muster.collector.server.connection_limits import ConnectionLimits
from muster.collector.server.refusal import RefusalReason
from muster.collector.trust.tokens import MAX_CACHED_TOKENS_PER_POD

ROOT = Path(__file__).parents[3]
LIMITS = ConnectionLimits(linger_seconds=0.05)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with collector_site(LIMITS) as running:
        yield running


@pytest.mark.parametrize("pods", [pytest.param(2, marks=(pytest.mark.long, pytest.mark.alone)), 30])
def test_hostile_pods_cost_little_and_delay_no_agent(pods: int) -> None:
    """The limits are wide, as test machines are slow; bench/hostile_pods.py prints the numbers."""
    bench = [sys.executable, str(ROOT / "bench" / "hostile_pods.py"), f"--pods={pods}", "--seconds=2"]
    done = subprocess.run(bench, check=False, capture_output=True, text=True, timeout=120)

    assert done.returncode == 0, done.stderr[-4000:]
    result: dict[str, Any] = json.loads(done.stdout)
    assert result["loop_lag_p99_ms"] < 500, result
    assert result["memory_growth_mib"] < 75, result
    assert result["honest_kept_max_ms"] < 2_000, result
    assert result["honest_new_max_ms"] < 4_000, result
    assert result["honest_failures"] == [], result


async def half_a_body(site: Site, token: str, size: int) -> Raw:
    raw = await connect(site)
    head = f"POST /v1/report HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nContent-Length: {size}\r\n\r\n"
    raw.writer.write(head.encode() + b" ")
    return raw


def pod_of(site: Site, namespace: str, node: int = 0) -> str:
    """Return a token of another pod, of another namespace."""
    uid = f"{namespace}-{node}"
    site.pods[uid] = PodIdentity(JOB, 0, 0)
    pod = replace(claim(0), namespace=namespace, pod_name=uid, pod_uid=uid)
    return site.issuer.issue(pod, site.clock.now, 3600.0)


def reserved(site: Site) -> int:
    return site.collector._routes._body_reader.reserved


LARGE = 500_000


async def test_half_sent_bodies_have_room_for_little_and_make_room_for_others(site: Site) -> None:
    most = MAX_BYTES_IN_FLIGHT // LARGE
    raws = [await half_a_body(site, pod_of(site, "evil", pod), LARGE) for pod in range(most)]
    await until(lambda: reserved(site) == most * LARGE)

    refused = await half_a_body(site, pod_of(site, "evil", most), LARGE)
    assert b" 429 " in (await refused.rest()).split(b"\r\n")[0]
    other = await half_a_body(site, pod_of(site, "victim"), LARGE)

    assert b" 429 " in (await raws[0].rest()).split(b"\r\n")[0]
    assert site.collector.refusal_counts == {RefusalReason.CROWDED_OUT: 2}
    assert (await site.post(site.report(0), site.token(0)))[0] == 200
    for raw in (*raws, refused, other):
        await raw.close()
    await until(lambda: reserved(site) == 0)


async def test_a_pods_newer_body_takes_the_place_of_one_that_does_not_come(site: Site) -> None:
    raw = await half_a_body(site, site.token(0), 1000)
    await until(lambda: reserved(site) == 1000)

    assert (await site.post(site.report(0), site.token(0)))[0] == 200

    assert b" 429 " in (await raw.rest()).split(b"\r\n")[0]
    assert reserved(site) == 0
    await raw.close()


async def test_a_body_that_does_not_come_gives_its_room_back() -> None:
    async with collector_site(replace(LIMITS, body_seconds=0.2)) as site:
        raw = await half_a_body(site, site.token(0), 1000)

        assert b" 408 " in (await raw.rest()).split(b"\r\n")[0]

        assert reserved(site) == 0
        await raw.close()


async def test_any_pods_token_is_no_place_among_the_jobs_pods() -> None:
    """Every pod of a cluster can get a token with our audience: only pods of jobs are more than strangers."""
    async with collector_site(ConnectionLimits(authentication_seconds=0.3)) as site:
        token = site.token(0)
        del site.pods[pod_uid(0)]
        raw = await connect(site)
        raw.writer.write(f"GET /v1/command HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode())

        assert b" 503 " in (await raw.rest()).split(b"\r\n")[0]

        assert site.collector.refusal_counts == {RefusalReason.UNKNOWN_POD: 1, RefusalReason.SILENT: 1}
        await raw.close()


async def test_many_tokens_of_one_pod_evict_no_other_pods_tokens(site: Site) -> None:
    await site.post(site.report(1), site.token(1))
    for number in range(10):
        token = site.issuer.issue(claim(0), site.clock.now - number, 3600.0)
        assert (await site.post(site.report(0), token))[0] == 200

    verifier = site.collector._routes._authenticator._verifier
    assert len(verifier._tokens_by_pod[pod_uid(0)]) == MAX_CACHED_TOKENS_PER_POD
    assert len(verifier._verified_tokens) == MAX_CACHED_TOKENS_PER_POD + 1


async def test_requests_that_come_before_the_last_is_answered_close_the_connection(site: Site) -> None:
    raw = await connect(site)
    request = f"GET /v1/command HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {site.token(0)}\r\n\r\n".encode()
    raw.writer.write(request * 40)

    await raw.rest()

    assert site.collector.refusal_counts == {RefusalReason.BAD_HTTP: 1}
    await until(lambda: site.collector.open_connections == 0)
    await raw.close()


async def test_expensive_reports_get_a_retry_after(site: Site) -> None:
    cpu = site.collector._cpu
    cpu.charge_pod("default", pod_uid(0), 0.7, asyncio.get_running_loop().time())

    status, headers, _ = await site.post(site.report(0), site.token(0))

    assert (status, site.collector.refusal_counts) == (429, {RefusalReason.TOO_BUSY: 1})
    assert int(headers["Retry-After"]) >= 5


async def test_who_asks_on_and_on_loses_its_connection(site: Site) -> None:
    raw = await connect(site)
    request = f"GET /v1/command HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {site.token(0)}\r\n\r\n".encode()
    raw.writer.write(request)
    await raw.reader.readuntil(b"\r\n\r\n")
    site.collector._cpu.charge_pod("default", pod_uid(0), 1.5, asyncio.get_running_loop().time())

    raw.writer.write(request)

    await raw.rest()
    assert set(site.collector.refusal_counts) == {RefusalReason.TOO_BUSY}
    await until(lambda: site.collector.open_connections == 0)
    await raw.close()
