import asyncio
import contextlib
import time
from collections.abc import Callable

import pytest

from cluster.api_proxy import PASS, Answer, ApiProxy, Call, Fate, Lose
from muster.api.document import JSON
from muster.api.json_fields import read_mapping
from muster.clients.kubernetes.client import Client
from muster.clients.kubernetes.lease import LeaderElector, make_identity
from muster.objects.kubernetes.kinds import LEASES

NAME = "muster-operator"
PATIENCE_SECONDS = 60
LEASE_SECONDS = 15
HANDED_OVER_SECONDS = 12
"""Less than the 15 s after which a Lease expires."""


class Contender:
    """One operator: its terms, and whether it leads now."""

    def __init__(self, client: Client, namespace: str, identity: str, ahead_seconds: float = 0) -> None:
        clock = lambda: time.time() + ahead_seconds  # noqa: E731 - it is one
        self.leader_elector = LeaderElector(client, namespace, NAME, identity, clock=clock)
        self.leader_terms: list[int] = []
        self.leads = asyncio.Event()
        self.stopped = asyncio.Event()
        self.task = asyncio.create_task(self.leader_elector.run(self._lead))

    async def _lead(self, leader_term: int) -> None:
        self.leader_terms.append(leader_term)
        self.stopped.clear()
        self.leads.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.leads.clear()
            self.stopped.set()

    async def until_it_leads(self) -> float:
        """Wait until the operator leads, and return the seconds."""
        began = time.monotonic()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await self.leads.wait()
        return time.monotonic() - began

    async def stop(self) -> None:
        self.task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self.task


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not is_so():  # noqa: ASYNC110 - there is no event to await
            await asyncio.sleep(0.1)


@pytest.fixture
def contend(namespace: str) -> Callable[[Client, str], Contender]:
    return lambda client, identity: Contender(client, namespace, identity)


async def spec(client: Client, namespace: str) -> dict[str, JSON]:
    return dict(read_mapping((await client.get(LEASES, namespace, NAME)).get("spec")))


async def test_one_leads_and_the_other_knows_who(
    client: Client, namespace: str, contend: Callable[[Client, str], Contender]
) -> None:
    first = contend(client, "first")
    await first.until_it_leads()
    second = contend(client, "second")
    await until(lambda: second.leader_elector.holder is not None)
    await asyncio.sleep(3)
    assert not second.leader_terms
    assert (first.leader_elector.holder, second.leader_elector.holder) == ("first", "first")
    lease = await spec(client, namespace)
    assert (lease["holderIdentity"], lease["leaseTransitions"]) == ("first", first.leader_terms[0])
    await first.stop()
    assert first.stopped.is_set()
    assert await second.until_it_leads() < HANDED_OVER_SECONDS
    assert second.leader_terms == [first.leader_terms[0] + 1]
    await second.stop()
    assert (await spec(client, namespace))["holderIdentity"] == ""
    assert second.leader_elector.holder is None


async def test_a_leader_that_is_cut_off_stops_before_another_leads(
    proxy: ApiProxy, proxied: Client, client: Client, contend: Callable[[Client, str], Contender]
) -> None:
    first = contend(proxied, "first")
    await first.until_it_leads()
    second = contend(client, "second")
    proxy.decide = lambda _: Answer(500, "InternalError")
    async with asyncio.timeout(PATIENCE_SECONDS):
        await first.stopped.wait()
    assert not second.leader_terms
    assert await second.until_it_leads() < LEASE_SECONDS
    assert second.leader_terms == [first.leader_terms[0] + 1]
    proxy.decide = lambda _: PASS
    await second.stop()
    await first.until_it_leads()
    assert first.leader_terms == [second.leader_terms[0] - 1, second.leader_terms[0] + 1]
    await first.stop()


async def test_a_leader_that_was_killed_is_followed(
    proxy: ApiProxy, proxied: Client, client: Client, contend: Callable[[Client, str], Contender]
) -> None:
    first = contend(proxied, "host_1")
    await first.until_it_leads()
    # Like a killed process: none of its requests reaches the API server.
    proxy.decide = lambda _: Answer(503, "ServiceUnavailable")
    await first.stop()
    second = contend(client, "host_2")
    assert await second.until_it_leads() < LEASE_SECONDS + HANDED_OVER_SECONDS
    assert second.leader_terms[0] > first.leader_terms[0]
    await second.stop()


async def test_the_lease_taken_away_ends_the_leader_term(
    client: Client, namespace: str, contend: Callable[[Client, str], Contender]
) -> None:
    first = contend(client, "first")
    await first.until_it_leads()
    await client.merge(LEASES, namespace, NAME, {"spec": {"holderIdentity": "thief", "leaseTransitions": 2**30}})
    async with asyncio.timeout(PATIENCE_SECONDS):
        await first.stopped.wait()
    assert first.leader_elector.holder == "thief"
    await first.until_it_leads()
    assert first.leader_terms[1:] == [2**30 + 1]
    await first.stop()


async def test_a_deleted_lease_ends_the_leader_term_and_never_lowers_it(
    client: Client, namespace: str, contend: Callable[[Client, str], Contender]
) -> None:
    first = contend(client, "first")
    await first.until_it_leads()
    await client.delete(LEASES, namespace, NAME)
    async with asyncio.timeout(PATIENCE_SECONDS):
        await first.stopped.wait()
    await first.until_it_leads()
    assert first.leader_terms[1] > first.leader_terms[0]
    await first.stop()
    await client.delete(LEASES, namespace, NAME)
    # Another process, some seconds later, without the earlier terms.
    second = Contender(client, namespace, "second", ahead_seconds=5)
    await second.until_it_leads()
    assert second.leader_terms[0] > first.leader_terms[1]
    await second.stop()


async def test_a_renewal_whose_answer_is_lost_costs_no_leader_term(
    proxy: ApiProxy, proxied: Client, client: Client, namespace: str, contend: Callable[[Client, str], Contender]
) -> None:
    first = contend(proxied, "first")
    await first.until_it_leads()
    lost: list[Call] = []

    def lose_updates(call: Call) -> Fate:
        if call.verb == "update" and len(lost) < 2:
            lost.append(call)
            return Lose()
        return PASS

    proxy.decide = lose_updates
    await until(lambda: len(lost) == 2)
    # The renewal after them succeeds.
    await asyncio.sleep(4)
    # Changing a label makes the leader's version outdated.
    await client.merge(LEASES, namespace, NAME, {"metadata": {"labels": {"a": "b"}}})
    await asyncio.sleep(4)
    assert first.leads.is_set()
    assert len(first.leader_terms) == 1
    await first.stop()
    lease = await client.get(LEASES, namespace, NAME)
    assert read_mapping(lease["metadata"])["labels"] == {"a": "b"}


async def test_an_acquisition_whose_answer_is_lost_is_made_again(
    proxy: ApiProxy, proxied: Client, client: Client, namespace: str, contend: Callable[[Client, str], Contender]
) -> None:
    lost: list[Call] = []

    def lose_the_first(call: Call) -> Fate:
        if call.verb == "create" and not lost:
            lost.append(call)
            return Lose()
        return PASS

    proxy.decide = lose_the_first
    first = contend(proxied, "first")
    await first.until_it_leads()
    assert (await spec(client, namespace))["leaseTransitions"] == first.leader_terms[0]
    await first.stop()


async def test_work_that_ends_gives_the_lease_back(client: Client, namespace: str) -> None:
    async def fail(leader_term: int) -> None:
        raise RuntimeError(f"term {leader_term} went wrong")

    leader_elector = LeaderElector(client, namespace, NAME, make_identity())
    with pytest.raises(RuntimeError, match="went wrong"):
        await leader_elector.run(fail)
    assert (await spec(client, namespace))["holderIdentity"] == ""
