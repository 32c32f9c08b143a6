"""Several operators behind one Service: only the leader accepts agents."""

import asyncio
import io
import json
import ssl
from collections.abc import AsyncIterator

import aiohttp
import pytest

from integration.collector.collector_site import JOB, Site, collector_site, report, trusting, until
from muster.collector.server.refusal import RefusalReason
from muster.collector.trust.certificate import issue_certificate
from muster_worker.contract import wire
from muster_worker.contract.schema import Command, CommandKind


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with collector_site() as running:
        yield running


async def answer(site: Site, token: str | None) -> tuple[int, dict[str, str]]:
    status, headers, body = await site.post(site.report(0), token)
    assert headers["Connection"] == "close"
    assert "Retry-After" not in headers
    return status, json.loads(body)


NOBODY_KNOWN = {"error": "This operator is not the leader; the leader is not known yet."}


async def test_a_collector_that_has_just_begun_does_not_lead() -> None:
    async with collector_site(leads=False) as site:
        assert await answer(site, site.token(0)) == (503, NOBODY_KNOWN)
        assert site.store.get_agent(JOB, 0) is None


async def test_who_stepped_down_and_has_not_heard_of_a_leader_says_so(site: Site) -> None:
    site.collector.step_down(None)

    assert await answer(site, site.token(0)) == (503, NOBODY_KNOWN)


@pytest.mark.parametrize("token", [None, "junk"])
async def test_no_token_is_looked_at_without_leading(site: Site, token: str | None) -> None:
    site.collector.step_down("muster-7d4f")

    assert await answer(site, token) == (503, {"error": "This operator is not the leader; muster-7d4f is."})
    assert site.collector.refusal_counts == {RefusalReason.NOT_LEADER: 1}


async def test_who_leads_again_hears_again(site: Site) -> None:
    site.collector.step_down("muster-7d4f")
    await answer(site, site.token(0))

    site.collector.start_leading(lambda: True)

    assert (await site.post(site.report(0), site.token(0)))[0] == 200


async def test_stepping_down_sends_those_away_who_wait_for_a_command(site: Site) -> None:
    poll = asyncio.create_task(site.poll(0, "wait=30"))
    await site.until_polled(0)

    site.collector.step_down("muster-7d4f")

    status, body = await poll
    assert (status, json.loads(body)["error"]) == (503, "This operator is not the leader; muster-7d4f is.")


async def test_a_report_that_is_still_coming_in_is_not_taken(site: Site) -> None:
    go_on = asyncio.Event()
    whole = wire.encode(report(0, 1))

    async def body() -> AsyncIterator[bytes]:
        yield whole[:10]
        await go_on.wait()
        yield whole[10:]

    sending = asyncio.create_task(site.post(body(), site.token(0), {"Content-Length": str(len(whole))}))
    await until(lambda: bool(site.collector._routes._authenticator._pod_limiter))  # its token was accepted
    site.collector.step_down("muster-7d4f")
    go_on.set()

    assert (await sending)[0] == 503
    assert site.store.get_agent(JOB, 0) is None


async def test_a_large_body_does_not_keep_the_sender_from_the_answer(site: Site) -> None:
    site.collector.step_down("muster-7d4f")

    assert (await site.post(io.BytesIO(b"x" * 4_000_000), None))[0] == 503


async def test_a_new_certificate_is_shown_on_new_connections_and_old_ones_stay(site: Site) -> None:
    assert (await site.post(site.report(0), site.token(0)))[0] == 200
    renewed = issue_certificate(["127.0.0.1"], site.clock.now, 3600.0)

    site.collector.use_certificate(renewed)

    # the client still has its connection: the collector would refuse a new one
    assert (await site.post(site.report(0), site.token(0)))[0] == 200
    assert site.collector.open_connections == 1
    headers = {"Authorization": f"Bearer {site.token(1)}"}
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trusting(renewed))) as client,
        client.post(f"{site.url}/v1/report", data=site.report(1), headers=headers) as answered,
    ):
        assert answered.status == 200
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=site.tls())) as client:
        with pytest.raises(aiohttp.ClientConnectorCertificateError) as refused:
            await client.get(site.url)
    assert isinstance(refused.value.certificate_error, ssl.SSLCertVerificationError)


async def test_who_does_not_know_whether_it_leads_neither_hears_nor_tells(site: Site) -> None:
    leads = [True]
    site.collector.start_leading(lambda: leads[0])
    poll = asyncio.create_task(site.poll(0, "wait=30"))
    await site.until_polled(0)

    leads[0] = False
    site.store.set_command(JOB, 0, Command(0, JOB, 1, CommandKind.START))

    assert (await poll)[0] == 503
    assert (await answer(site, site.token(0)))[0] == 503
