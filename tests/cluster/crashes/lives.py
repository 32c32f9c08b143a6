"""The lives of jobs that the operator is killed in: what is asked for, and what ranks and users do."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from cluster.crashes.endings import Ending, ending, wrongs
from cluster.crashes.rank_desk import Begun, RankDesk
from cluster.crashes.world import ObservedJob, World
from cluster.images import PULL_POLICY, PYTHON_IMAGE
from muster.api.document import JSON
from muster.clients.kubernetes.client import Client
from muster.objects.kubernetes.kinds import JOBS, Object

STAGE_SECONDS = 120.0
GRACE_SECONDS = 6


@dataclass(frozen=True)
class Place:
    """Where a job lives: the cluster without anything in between, what is seen of it, and where its ranks report."""

    client: Client
    world: World
    desk: RankDesk
    namespace: str

    def starts(self, job: str) -> Counter[int]:
        """How often each of the job's ranks began."""
        return self.desk.starts.get(job, Counter())

    def ending(self, job: str) -> Ending:
        """How the job stands."""
        return ending(self.world.of(job), self.starts(job))

    def wrongs(self, job: str, clean: Ending) -> str:
        """What is wrong with a job that should have ended so; "" for nothing."""
        result = (*self.mistakes(job), self.ending(job).differs(clean))
        return "; ".join(each for each in result if each)

    def mistakes(self, job: str) -> list[str]:
        """What must not have been."""
        return wrongs(self.world.of(job), self.starts(job))

    async def stage(self, job: str, holds: Callable[[ObservedJob], bool], what: str) -> None:
        """Wait until the job has come so far."""
        if not await self.world.until(job, holds, STAGE_SECONDS):
            raise NotReached(f"never {what}: {self.ending(job)}")

    async def patch(self, job: str, **spec: object) -> None:
        """Change the job's spec."""
        changes: Any = {"spec": spec}
        await self.client.merge(JOBS, self.namespace, job, changes)


class NotReached(Exception):
    """A life came to a halt."""


@dataclass(frozen=True)
class Life:
    """`world` ranks; `order` says how they end, `acts` what the user does after applying the job.

    `last` is the reason of the event that says the end, or "" for a job that is deleted; `left` is what stays of it.
    """

    name: str
    world: int
    spec: dict[str, JSON]
    order: Callable[[Begun], Awaitable[int]]
    acts: Callable[[Place, str], Awaitable[None]]
    last: str
    left: frozenset[str] = frozenset()

    def is_over(self, seen: ObservedJob) -> bool:
        """Whether the job came to its end, and was tidied up."""
        is_told = any(reason == self.last for _, reason in seen.events) if self.last else not seen.exists
        return is_told and seen.there == self.left

    async def begin(self, place: Place, job: str) -> None:
        """Have the job applied."""
        place.desk.orders[job] = self.order
        await place.client.create(JOBS, place.namespace, self._manifest(place, job))

    async def live(self, place: Place, job: str) -> None:
        """Do what the user does."""
        await self.acts(place, job)

    def _manifest(self, place: Place, job: str) -> Object:
        trainer: JSON = {"name": "trainer", "imagePullPolicy": PULL_POLICY}
        pod: JSON = {"terminationGracePeriodSeconds": GRACE_SECONDS, "containers": [trainer]}
        return {
            "apiVersion": JOBS.api_version,
            "kind": JOBS.name,
            "metadata": {"name": job, "namespace": place.namespace},
            "spec": {
                "image": PYTHON_IMAGE,
                "command": [*place.desk.command(job)],
                "launcher": {"direct": {}},
                "template": {"spec": pod},
                **self.spec,
            },
        }


def all_began(place: Place, job: str, world: int, times: int = 1) -> Callable[[ObservedJob], bool]:
    """Whether each rank has begun so often."""

    def holds(_: ObservedJob) -> bool:
        starts = place.starts(job)
        return sum(count >= times for count in starts.values()) == world

    return holds


async def ends_well(_: Begun) -> int:
    """At once."""
    return 0


async def stays(_: Begun) -> int:
    """Until it is ended."""
    return await asyncio.Future[int]()


async def rank_1_fails(begun: Begun) -> int:
    """The other one would stay."""
    await begun.until_all(2)
    return FAILING_CODE if begun.rank == 1 else await stays(begun)


async def second_ends_well(begun: Begun) -> int:
    """The first is suspended."""
    return await stays(begun) if begun.start == 1 else 0


async def nothing(_: Place, __: str) -> None:
    """The user looks on."""


async def suspends_and_resumes(place: Place, job: str) -> None:
    """Once its ranks run."""
    await place.stage(job, all_began(place, job, 1), "began")
    await place.patch(job, suspend=True)
    await place.stage(job, lambda seen: seen.phase == "Suspended", "suspended")
    await place.patch(job, suspend=False)


async def deletes(place: Place, job: str) -> None:
    """Once its ranks run."""
    await place.stage(job, lambda seen: seen.phase == "Running" and all_began(place, job, 1)(seen), "running")
    await place.client.delete(JOBS, place.namespace, job)


FAILING_CODE = 7
KEPT = frozenset(("Service -muster", "ConfigMap -muster"))

COMPLETES = Life("completes", 2, {"nodes": 2, "cleanPodPolicy": "All"}, ends_well, nothing, "Completed", KEPT)
FAILS = Life(
    "fails", 2, {"nodes": 1, "procsPerNode": 2, "cleanPodPolicy": "All"}, rank_1_fails, nothing, "Failed", KEPT
)
RESUMES = Life(
    "resumes", 1, {"nodes": 1, "cleanPodPolicy": "All"}, second_ends_well, suspends_and_resumes, "Completed", KEPT
)
DELETED = Life("deleted", 1, {"nodes": 1}, stays, deletes, "")
LIVES = (COMPLETES, FAILS, RESUMES, DELETED)
