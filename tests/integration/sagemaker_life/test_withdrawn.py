"""Deleting, suspending or changing a job does not wait for the download of its code."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from fakes.sagemaker_site.life import run_scenario
from fakes.sagemaker_site.site import Site, Wire, make_spec
from muster.api.spec.job import Job
from muster.objects.aws.access import AwsAccess


@dataclass
class StuckHost:
    """A host that never sends code. `begun` are the generations of the jobs that started a fetch, `given_up` those that
    cancelled it.
    """

    begun: list[int] = field(default_factory=list)
    given_up: list[int] = field(default_factory=list)

    async def prepare(self, job: Job, attempt: int, aws_access: AwsAccess) -> Mapping[str, object]:  # noqa: ARG002
        self.begun.append(job.metadata.generation)
        try:
            await asyncio.sleep(1e9)
        except asyncio.CancelledError:
            self.given_up.append(job.metadata.generation)
            raise
        raise AssertionError


async def _fetching(site: Site) -> StuckHost:
    host = StuckHost()
    assert site.operator is not None
    backend = site.operator.life.backend
    backend._actions = replace(backend._actions, requests=host)
    # requests of earlier operators have arrived by now
    await asyncio.sleep(60)
    site.stored.create("vit", make_spec())
    await _until(lambda: bool(host.begun))
    return host


async def _until(holds: object) -> None:
    assert callable(holds)
    async with asyncio.timeout(600):
        while not holds():  # noqa: ASYNC110 - there is no event to await
            await asyncio.sleep(0.1)


def test_a_deletion_does_not_wait(wire: Wire) -> None:
    async def life(site: Site) -> None:
        host = await _fetching(site)
        deleted_at = site.get_now()
        site.stored.delete("vit")
        await site.wait_until(lambda: site.stored.read("vit") is None)
        assert site.get_now() - deleted_at < 5
        assert host.given_up == [1]
        assert not site.service.list_calls("CreateTrainingJob")

    run_scenario(wire, life)


def test_a_suspension_does_not_wait(wire: Wire) -> None:
    async def life(site: Site) -> None:
        host = await _fetching(site)
        changed_at = site.get_now()
        site.stored.change("vit", suspend=True)
        await site.wait_until(lambda: site.get_phase() == "Suspended")
        assert site.get_now() - changed_at < 5
        assert host.given_up == [1]
        assert not site.service.list_calls("CreateTrainingJob")

    run_scenario(wire, life)


def test_what_another_spec_asks_for_is_fetched_at_once(wire: Wire) -> None:
    async def life(site: Site) -> None:
        host = await _fetching(site)
        changed_at = site.get_now()
        site.stored.change("vit", command=["python", "other.py"])
        await _until(lambda: host.begun == [1, 2])
        assert site.get_now() - changed_at < 5
        assert host.given_up == [1]

    run_scenario(wire, life)


def test_what_changes_nothing_of_the_spec_interrupts_nothing(wire: Wire) -> None:
    async def life(site: Site) -> None:
        host = await _fetching(site)
        resource = site.stored.read("vit")
        assert resource is not None
        site.stored.forge("vit", [*resource["metadata"]["finalizers"], "example.org/mine"])
        await asyncio.sleep(60)
        assert (host.begun, host.given_up) == ([1], [])

    run_scenario(wire, life)
