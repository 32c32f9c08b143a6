"""Elections on a real API server. All run at the same time, because they wait for Leases to expire."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from cluster.api_proxy import PASS, Answer, ApiProxy, Call, Fate, Lose
from cluster.shared import Kubectl
from muster.api.document import JSON
from muster.api.json_fields import read_mapping
from muster.clients.kubernetes.client import Client
from muster.clients.kubernetes.lease import LeaderElector, make_identity
from muster.objects.kubernetes.kinds import LEASES

PATIENCE_SECONDS = 60
LEASE_SECONDS = 15
HANDED_OVER_SECONDS = 12
"""Less than the 15 s after which a Lease expires."""


class Contender:
    """One operator: its terms, and whether it leads now."""

    def __init__(self, leader_elector: LeaderElector) -> None:
        self.leader_elector = leader_elector
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


@dataclass(frozen=True)
class Election:
    """A Lease, and the ways to the API server: directly, and by a proxy."""

    client: Client
    kubectl: Kubectl
    namespace: str
    name: str
    folder: Path

    def contend(self, identity: str, client: Client | None = None, ahead_seconds: float = 0) -> Contender:
        clock = lambda: time.time() + ahead_seconds  # noqa: E731 - it is one
        return Contender(LeaderElector(client or self.client, self.namespace, self.name, identity, clock=clock))

    async def spec(self) -> dict[str, JSON]:
        return dict(read_mapping((await self.client.get(LEASES, self.namespace, self.name)).get("spec")))

    @contextlib.asynccontextmanager
    async def proxied(self) -> AsyncIterator[tuple[ApiProxy, Client]]:
        folder = self.folder / self.name
        folder.mkdir()
        async with ApiProxy.serve(folder, self.kubectl.kubeconfig) as proxy:
            client = await Client.connect(str(proxy.kubeconfig))
            yield proxy, client
            await client.close()


async def one_leads_and_the_other_knows_who(election: Election) -> None:
    first = election.contend("first")
    await first.until_it_leads()
    second = election.contend("second")
    await until(lambda: second.leader_elector.holder is not None)
    await asyncio.sleep(3)
    assert not second.leader_terms
    assert (first.leader_elector.holder, second.leader_elector.holder) == ("first", "first")
    lease = await election.spec()
    assert (lease["holderIdentity"], lease["leaseTransitions"]) == ("first", first.leader_terms[0])
    await first.stop()
    assert first.stopped.is_set()
    assert await second.until_it_leads() < HANDED_OVER_SECONDS
    assert second.leader_terms == [first.leader_terms[0] + 1]
    await second.stop()
    assert (await election.spec())["holderIdentity"] == ""
    assert second.leader_elector.holder is None


async def a_leader_that_is_cut_off_stops_before_another_leads(election: Election) -> None:
    async with election.proxied() as (proxy, proxied):
        first = election.contend("first", proxied)
        await first.until_it_leads()
        second = election.contend("second")
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


async def a_deleted_lease_ends_the_leader_term_and_never_lowers_it(election: Election) -> None:
    first = election.contend("first")
    await first.until_it_leads()
    await election.client.delete(LEASES, election.namespace, election.name)
    async with asyncio.timeout(PATIENCE_SECONDS):
        await first.stopped.wait()
    await first.until_it_leads()
    assert first.leader_terms[1] > first.leader_terms[0]
    await first.stop()
    await election.client.delete(LEASES, election.namespace, election.name)
    # Another process, some seconds later, without the earlier terms.
    second = election.contend("second", ahead_seconds=5)
    await second.until_it_leads()
    assert second.leader_terms[0] > first.leader_terms[1]
    await second.stop()


async def a_renewal_whose_answer_is_lost_costs_no_leader_term(election: Election) -> None:
    async with election.proxied() as (proxy, proxied):
        first = election.contend("first", proxied)
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
        labels: JSON = {"a": "b"}
        await election.client.merge(LEASES, election.namespace, election.name, {"metadata": {"labels": labels}})
        await asyncio.sleep(4)
        assert first.leads.is_set()
        assert len(first.leader_terms) == 1
        await first.stop()
        lease = await election.client.get(LEASES, election.namespace, election.name)
        assert read_mapping(lease["metadata"])["labels"] == labels


async def an_acquisition_whose_answer_is_lost_is_made_again(election: Election) -> None:
    lost: list[Call] = []

    def lose_the_first(call: Call) -> Fate:
        if call.verb == "create" and not lost:
            lost.append(call)
            return Lose()
        return PASS

    async with election.proxied() as (proxy, proxied):
        proxy.decide = lose_the_first
        first = election.contend("first", proxied)
        await first.until_it_leads()
        assert (await election.spec())["leaseTransitions"] == first.leader_terms[0]
        await first.stop()


async def work_that_ends_gives_the_lease_back(election: Election) -> None:
    async def fail(leader_term: int) -> None:
        raise RuntimeError(f"term {leader_term} went wrong")

    leader_elector = LeaderElector(election.client, election.namespace, election.name, make_identity())
    with pytest.raises(RuntimeError, match="went wrong"):
        await leader_elector.run(fail)
    assert (await election.spec())["holderIdentity"] == ""


ELECTIONS = (
    one_leads_and_the_other_knows_who,
    a_leader_that_is_cut_off_stops_before_another_leads,
    a_deleted_lease_ends_the_leader_term_and_never_lowers_it,
    a_renewal_whose_answer_is_lost_costs_no_leader_term,
    an_acquisition_whose_answer_is_lost_is_made_again,
    work_that_ends_gives_the_lease_back,
)


async def test_elections(client: Client, kubectl: Kubectl, namespace: str, tmp_path: Path) -> None:
    async with asyncio.TaskGroup() as group:
        for number, hold in enumerate(ELECTIONS):
            group.create_task(hold(Election(client, kubectl, namespace, f"lease-{number}", tmp_path)))
