"""The collector over real HTTPS: reports in, commands out."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from integration.collector.collector_site import JOB, NODES, Site, collector_site, pod_uid
from muster.collector.pod_directory import PodIdentity
from muster.collector.server.refusal import RefusalReason
from muster_worker.contract import wire
from muster_worker.contract.schema import Command, CommandKind, ReportAnswer


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with collector_site() as running:
        yield running


async def test_a_report_becomes_facts(site: Site) -> None:
    status, _, body = await site.post(site.report(1), site.token(1))

    assert (status, wire.decode(ReportAnswer, body)) == (200, ReportAnswer(1.0))
    facts = site.store.get_agent(JOB, 1)
    assert facts is not None
    assert [rank.started_at for rank in facts.ranks] == [site.clock.now - 1.0] * 8
    assert not site.collector.refusal_counts


async def test_a_report_wakes_who_waits_for_changes(site: Site) -> None:
    changed = site.store.get_change_event(JOB)
    assert not changed.is_set()

    await site.post(site.report(1), site.token(1))

    assert changed.is_set()


async def test_a_pod_that_is_not_known_yet_is_asked_to_come_again(site: Site) -> None:
    member = site.pods.pop(pod_uid(2))
    status, headers, _ = await site.post(site.report(2), site.token(2))
    assert (status, headers["Retry-After"]) == (503, "1")
    assert site.collector.refusal_counts == {RefusalReason.UNKNOWN_POD: 1}
    assert site.store.get_agent(JOB, 2) is None

    site.pods[pod_uid(2)] = member

    assert (await site.post(site.report(2), site.token(2)))[0] == 200


async def test_a_pod_of_a_job_that_is_not_registered_is_asked_to_come_again(site: Site) -> None:
    site.store.remove_job(JOB)

    assert (await site.post(site.report(0), site.token(0)))[0] == 503


async def test_without_a_command_a_poll_ends_empty(site: Site) -> None:
    assert await site.poll(0, "wait=0") == (204, b"")


async def test_a_poll_gets_the_current_command_at_once(site: Site) -> None:
    site.store.set_command(JOB, 0, start(1))

    status, body = await site.poll(0, "wait=30")

    assert (status, wire.decode(Command, body)) == (200, start(1))
    assert await site.poll(0, "after=0.1.0&wait=0") == (204, b"")


async def test_a_lower_command_never_replaces_a_higher_one(site: Site) -> None:
    kill = Command(0, JOB, 1, CommandKind.KILL)
    site.store.set_command(JOB, 0, kill)
    site.store.set_command(JOB, 0, start(1))

    assert wire.decode(Command, (await site.poll(0, "wait=0"))[1]) == kill


async def test_a_poll_wakes_within_milliseconds_of_a_command(site: Site) -> None:
    delays = []
    for attempt in range(1, 21):
        poll = asyncio.create_task(site.poll(0, f"after=0.{attempt - 1}.0&wait=30"))
        await site.until_polled(0)
        sent = time.perf_counter()
        site.store.set_command(JOB, 0, start(attempt))
        status, _ = await poll
        delays.append(time.perf_counter() - sent)
        assert status == 200
        site.clock.now += 1.0

    assert sorted(delays)[10] < 0.05


async def test_a_newer_poll_takes_the_older_ones_place(site: Site) -> None:
    older = asyncio.create_task(site.poll(0, "wait=30"))
    await site.until_polled(0)
    newer = asyncio.create_task(site.poll(0, "wait=30"))

    assert (await older)[0] == 429
    await site.until_polled(0)
    site.store.set_command(JOB, 0, start(1))
    assert (await newer)[0] == 200
    assert site.collector.refusal_counts == {RefusalReason.TOO_MANY_POLLS: 1}


async def test_closing_answers_open_polls(site: Site) -> None:
    poll = asyncio.create_task(site.poll(0, "wait=30"))
    await site.until_polled(0)

    await site.collector.close()

    assert (await poll)[0] == 204


async def test_commands_reach_their_node_only(site: Site) -> None:
    site.store.set_command(JOB, 0, start(1))

    assert [(await site.poll(node, "wait=0"))[0] for node in range(NODES)] == [200, 204, 204, 204]


@pytest.mark.parametrize(
    "query", ["after=1&wait=1", "after=1.1.9&wait=1", "wait=-1", "wait=1e3", "wait=1&wait=2", "x=1", "after=\uff11.1.1"]
)
async def test_a_bad_question_is_refused(site: Site, query: str) -> None:
    assert (await site.poll(0, query))[0] == 400
    assert site.collector.refusal_counts == {RefusalReason.MALFORMED: 1}


async def test_a_replaced_pod_speaks_for_its_replacement_only(site: Site) -> None:
    site.pods["pod-new"] = PodIdentity(JOB, 0, 1)

    assert (await site.post(site.report(0, replacement=1), site.token(0)))[0] == 403
    assert site.collector.refusal_counts == {RefusalReason.OTHER_POD: 1}


def start(attempt: int) -> Command:
    return Command(0, JOB, attempt, CommandKind.START)
