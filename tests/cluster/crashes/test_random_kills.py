"""Minutes of random kills, with twenty jobs at any time: each reaches its expected end."""

import asyncio
import os
import random
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from cluster.crashes.lives import KEPT, Life, NotReached, Place, all_began, ends_well, nothing, second_ends_well, stays
from cluster.crashes.lives import suspends_and_resumes as suspends
from cluster.crashes.operator_fork import OperatorFork
from cluster.crashes.rank_desk import Begun
from cluster.places import state
from muster.api.document import JSON
from muster.objects.kubernetes.errors import ApiError
from muster.objects.kubernetes.kinds import JOBS, LEASES

pytestmark = pytest.mark.long

MINUTES = float(os.environ.get("MUSTER_RANDOM_KILLS_MINUTES", "2"))
SEED = int(os.environ.get("MUSTER_RANDOM_KILLS_SEED", "0")) or random.SystemRandom().randrange(1, 1_000_000)
JOBS_PER_BATCH = 20
OVER_SECONDS = 120.0
"""The time for a job to end, with an operator that is killed again and again."""

MAX_WORK_SECONDS = 8.0
MAX_PAUSE_SECONDS = 8.0
KILLED_SHARE = 0.7
EXPIRED_SHARE = 0.8
LEADING_SHARE = 0.8
"""The share of operators that may lead for a moment before they are killed."""


@dataclass(frozen=True)
class Role:
    """A scenario and its expected end; `root_cause` is the rank that fails, and its exit code."""

    life: Life
    phase: str
    attempt: int = 1
    root_cause: tuple[int, int] | None = None


def draw(chance: random.Random) -> Role:
    """Choose the next job's scenario."""
    nodes, seconds = chance.randint(1, 2), chance.uniform(0.0, MAX_WORK_SECONDS)
    spec: dict[str, JSON] = {"nodes": nodes, "cleanPodPolicy": "All"}

    async def works(_: Begun) -> int:
        await asyncio.sleep(seconds)
        return 0

    rank, code = chance.randrange(nodes), chance.randint(3, 60)

    async def fails(begun: Begun) -> int:
        if begun.rank != rank:
            return await stays(begun)
        await begun.until_all(nodes)
        await asyncio.sleep(seconds)
        return code

    async def deletes(place: Place, job: str) -> None:
        await place.stage(job, all_began(place, job, nodes), "began")
        await asyncio.sleep(seconds)
        await place.client.delete(JOBS, place.namespace, job)

    one: dict[str, JSON] = {"nodes": 1, "cleanPodPolicy": "All"}
    roles = (
        Role(Life("works", nodes, spec, works, nothing, "Completed", KEPT), "Succeeded"),
        Role(Life("quick", nodes, spec, ends_well, nothing, "Completed", KEPT), "Succeeded"),
        Role(Life("fails", nodes, spec, fails, nothing, "Failed", KEPT), "Failed", root_cause=(rank, code)),
        Role(Life("naps", 1, one, second_ends_well, suspends, "Completed", KEPT), "Succeeded", attempt=2),
        Role(Life("goes", nodes, spec, stays, deletes, ""), ""),
    )
    return chance.choice(roles)


async def live(place: Place, role: Role, job: str) -> str:
    """Return what is wrong with the job at its end; "" for nothing."""
    life = role.life
    try:
        await life.begin(place, job)
        await life.live(place, job)
        if not await place.world.until(job, life.is_over, OVER_SECONDS):
            return f"not over: {place.ending(job)}"
        result = place.ending(job)
    except NotReached as halt:
        return str(halt)
    problems = place.mistakes(job)
    if (result.phase, result.attempt) != (role.phase, role.attempt if role.phase else 0):
        problems.append(f"ended as {result.phase} after {result.attempt} starts: {result}")
    if role.root_cause is not None and (result.failures[0][0], result.failures[0][2]) != role.root_cause:
        problems.append(f"{result.failures} are blamed, not {role.root_cause}")
    problems += [f"{count} events {told}" for told, count in result.events if count != _times(role, told[1])]
    await place.client.delete(JOBS, place.namespace, job)
    return "; ".join(problems)


def _times(role: Role, reason: str) -> int:
    return role.attempt if reason == "Started" else 1


async def kill_at_random(operator: OperatorFork, place: Place, chance: random.Random) -> None:
    """Run until cancelled. A killed operator's Lease expires by itself, or at once: otherwise mostly none would
    lead.
    """
    while True:
        if chance.random() < LEADING_SHARE:
            await asyncio.to_thread(operator.until_leads)
        await asyncio.sleep(chance.uniform(0.2, MAX_PAUSE_SECONDS))
        is_killed = chance.random() < KILLED_SHARE
        (operator.kill if is_killed else operator.stop)()
        await asyncio.to_thread(operator.join)
        if is_killed and chance.random() < EXPIRED_SHARE:
            with suppress(ApiError):
                await place.client.merge(LEASES, place.namespace, "lead", {"spec": {"leaseDurationSeconds": 1}})
        await asyncio.to_thread(operator.start)


@asynccontextmanager
async def dying(place: Place, folder: Path, chance: random.Random) -> AsyncIterator[OperatorFork]:
    """Kill the operator at random inside the block; afterwards one runs undisturbed."""
    operator = OperatorFork(state().kubeconfig, place.namespace, folder / "operator.log")
    operator.start()
    killing = asyncio.create_task(kill_at_random(operator, place, chance))
    try:
        yield operator
    finally:
        killing.cancel()
        with suppress(asyncio.CancelledError):
            await killing
        await asyncio.to_thread(operator.end)


@pytest.mark.timeout(60 * MINUTES + 3 * OVER_SECONDS)
async def test_every_job_comes_to_its_right_end(
    places: tuple[Place, ...], numbers: Iterator[int], tmp_path: Path
) -> None:
    place, chance = places[0], random.Random(SEED)  # noqa: S311 - to be reproducible
    deadline = time.monotonic() + 60 * MINUTES
    jobs: list[str] = []
    problems: list[str] = []

    async def slot() -> None:
        while time.monotonic() < deadline:
            role = draw(chance)
            job = f"{role.life.name}{next(numbers)}"
            jobs.append(job)
            result = await live(place, role, job)
            if result:
                problems.append(f"{job}: {result}")

    async with dying(place, tmp_path, chance) as operator:
        await asyncio.gather(*(slot() for _ in range(JOBS_PER_BATCH)))
    print(f"seed {SEED}: {len(jobs)} jobs, {operator.starts} operators")  # noqa: T201 - to reproduce it
    assert problems == [], f"seed {SEED}\n" + "\n".join(problems)
    assert "Traceback" not in operator.said
