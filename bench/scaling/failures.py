"""Measures the time from a failure until the job's status says so."""

import asyncio
import math
import time
from collections.abc import Sequence
from typing import Any

from scaling import usage
from scaling.api import Request
from scaling.job_watch import is_failed, shows_failure
from scaling.muster_site import PREFIX, MusterSite
from scaling.workloads import RANKS

PAUSE_SECONDS = 0.5
"""The time between two failures of an idle operator: it has completed the end of the last job."""

START_SECONDS, END_SECONDS = 180.0, 90.0


def summarise(seconds: Sequence[float]) -> dict[str, float]:
    """Return percentiles."""
    ordered = sorted(seconds)

    def find(fraction: float) -> float:
        return round(ordered[max(0, math.ceil(fraction * len(ordered)) - 1)], 3)

    return {"samples": len(ordered), "p50": find(0.5), "p90": find(0.9), "p99": find(0.99), "max": find(1.0)}


def make_names(count: int) -> list[str]:
    """Return names of jobs."""
    return [f"{PREFIX}{number}" for number in range(count)]


async def measure_ranks(site: MusterSite, jobs: int, pods: int, *, pause: float | None) -> dict[str, Any]:
    """Let one rank of each job fail: all at once, or one job after the other with a pause."""
    names = make_names(jobs)
    await site.start(names, pods, START_SECONDS)
    await asyncio.sleep(5.0)
    ranks = [(f"{name}-{number % pods}-0", number % RANKS) for number, name in enumerate(names)]
    batches = [[number] for number in range(jobs)] if pause is not None else [list(range(jobs))]
    said, final = [], []
    cpu = [site.measure_cpu()]
    for batch in batches:
        shown = [asyncio.create_task(site.jobs.wait(names[number], shows_failure)) for number in batch]
        failed = [asyncio.create_task(site.jobs.wait(names[number], is_failed)) for number in batch]
        with site.profile():
            at = await site.get_agents().fail([ranks[number] for number in batch])
            async with asyncio.timeout(END_SECONDS):
                said += [seen - start for seen, start in zip(await asyncio.gather(*shown), at, strict=True)]
        cpu.append(site.measure_cpu())
        async with asyncio.timeout(END_SECONDS):
            final += [seen - start for seen, start in zip(await asyncio.gather(*failed), at, strict=True)]
        await asyncio.sleep(pause or 0.0)
    cpu.append(site.measure_cpu())
    return {
        "jobs": jobs,
        "pods": pods,
        "pause": pause,
        "status_seconds": summarise(said),
        "failed_seconds": summarise(final),
        "cpu_seconds": usage.compute_differences(cpu[0], cpu[-1]),
        "cpu_seconds_until_status": usage.compute_differences(cpu[0], cpu[1]),
        "messages": sorted({site.jobs.statuses[name]["message"][:150] for name in names})[:3],
    }


async def measure_pods(site: MusterSite, jobs: int, pods: int, *, pause: float | None) -> dict[str, Any]:
    """Let one pod of each job fail without a report of an agent: all at once, or one job after the other."""
    names = make_names(jobs)
    await site.apply(names, pods)
    async with asyncio.timeout(START_SECONDS):
        await site.pods.wait_for(jobs * pods)
    await asyncio.sleep(5.0)
    said = []
    batches = [[name] for name in names] if pause is not None else [names]
    ends = []
    for batch in batches:
        shown = [asyncio.create_task(site.jobs.wait(name, shows_failure)) for name in batch]
        start = time.monotonic()
        ends += [asyncio.create_task(_wait_for_end(site, name, start)) for name in batch]
        with site.profile():
            await site.api.send_all([make_failure(site.namespace, f"{name}-1-0") for name in batch])
            async with asyncio.timeout(END_SECONDS):
                said += [seen - start for seen in await asyncio.gather(*shown)]
        await asyncio.sleep(pause or 0.0)
    async with asyncio.timeout(END_SECONDS):
        final = await asyncio.gather(*ends)
    return {
        "jobs": jobs,
        "pods": pods,
        "pause": pause,
        "status_seconds": summarise(said),
        "failed_seconds": summarise(final),
        "messages": sorted({site.jobs.statuses[name]["message"][:150] for name in names})[:3],
    }


async def _wait_for_end(site: MusterSite, name: str, start: float) -> float:
    return await site.jobs.wait(name, is_failed) - start


def make_failure(namespace: str, pod: str) -> Request:
    """Return the request with which a kubelet reports that a pod has failed."""
    state = {"terminated": {"exitCode": 1, "reason": "Error"}}
    container = {"name": "trainer", "image": "", "imageID": "", "ready": False, "restartCount": 0, "state": state}
    body = {"status": {"phase": "Failed", "containerStatuses": [container]}}
    return Request("PATCH", f"/api/v1/namespaces/{namespace}/pods/{pod}/status", body)
