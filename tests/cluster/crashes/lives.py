"""The scenarios in which the operator is killed: the job's spec, and what ranks and users do."""

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
    """The environment of a job: the cluster without a proxy, the observation of jobs, and the server for their
    ranks.
    """

    client: Client
    world: World
    desk: RankDesk
    namespace: str

    def starts(self, job: str) -> Counter[int]:
        """Return the number of starts of each of the job's ranks."""
        return self.desk.starts.get(job, Counter())

    def ending(self, job: str) -> Ending:
        """Return the job's current end."""
        return ending(self.world.of(job), self.starts(job))

    def wrongs(self, job: str, clean: Ending) -> str:
        """Describe how the job differs from its expected end; "" if it doesn't."""
        result = (*self.mistakes(job), self.ending(job).differs(clean))
        return "; ".join(each for each in result if each)

    def mistakes(self, job: str) -> list[str]:
        """Violations so far."""
        return wrongs(self.world.of(job), self.starts(job))

    async def stage(self, job: str, holds: Callable[[ObservedJob], bool], what: str) -> None:
        """Wait until the job has reached this stage."""
        if not await self.world.until(job, holds, STAGE_SECONDS):
            raise NotReached(f"never {what}: {self.ending(job)}")

    async def patch(self, job: str, **spec: object) -> None:
        """Change the job's spec."""
        changes: Any = {"spec": spec}
        await self.client.merge(JOBS, self.namespace, job, changes)


class NotReached(Exception):
    """A scenario did not continue."""


@dataclass(frozen=True)
class Life:
    """`world` ranks; `order` is how they end, `acts` what the user does after applying the job.

    `last` is the reason of the last event, or "" for a job that is deleted; `left` are the remaining objects.
    """

    name: str
    world: int
    spec: dict[str, JSON]
    order: Callable[[Begun], Awaitable[int]]
    acts: Callable[[Place, str], Awaitable[None]]
    last: str
    left: frozenset[str] = frozenset()

    def is_over(self, seen: ObservedJob) -> bool:
        """Whether the job has ended, and its pods are deleted."""
        is_told = any(reason == self.last for _, reason in seen.events) if self.last else not seen.exists
        return is_told and seen.there == self.left

    async def begin(self, place: Place, job: str) -> None:
        """Apply the job."""
        place.desk.orders[job] = self.order
        await place.client.create(JOBS, place.namespace, self._manifest(place, job))

    async def live(self, place: Place, job: str) -> None:
        """Carry out the user's actions."""
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
    """Whether each rank has started this often."""

    def holds(_: ObservedJob) -> bool:
        starts = place.starts(job)
        return sum(count >= times for count in starts.values()) == world

    return holds


async def ends_well(_: Begun) -> int:
    """The ranks succeed at once."""
    return 0


async def stays(_: Begun) -> int:
    """The ranks run until they are stopped."""
    return await asyncio.Future[int]()


async def rank_1_fails(begun: Begun) -> int:
    """Rank 1 fails. Rank 0 would continue to run."""
    await begun.until_all(2)
    return FAILING_CODE if begun.rank == 1 else await stays(begun)


async def fails_once(begun: Begun) -> int:
    """The first attempt fails, the second succeeds."""
    return await rank_1_fails(begun) if begun.start == 1 else 0


async def second_ends_well(begun: Begun) -> int:
    """The first start is suspended, the second succeeds."""
    return await stays(begun) if begun.start == 1 else 0


async def nothing(_: Place, __: str) -> None:
    """The user does nothing."""


async def suspends_and_resumes(place: Place, job: str) -> None:
    """While its ranks run."""
    await place.stage(job, all_began(place, job, 1), "began")
    await place.patch(job, suspend=True)
    await place.stage(job, lambda seen: seen.phase == "Suspended", "suspended")
    await place.patch(job, suspend=False)


async def deletes(place: Place, job: str) -> None:
    """While its ranks run."""
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
RESTARTS = Life(
    "restarts",
    2,
    {"nodes": 1, "procsPerNode": 2, "cleanPodPolicy": "All", "failurePolicy": {"maxRestarts": 1}},
    fails_once,
    nothing,
    "Completed",
    KEPT,
)
DELETED = Life("deleted", 1, {"nodes": 1}, stays, deletes, "")
LIVES = (COMPLETES, FAILS, RESTARTS, RESUMES, DELETED)
