"""Measures a job's start until all its ranks run, and the restart of all its ranks in place after a failure."""

import asyncio
import time
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from scaling import usage
from scaling.job_watch import all_ranks_run, shows_failure
from scaling.muster_site import PREFIX, MusterSite

JOB = f"{PREFIX}0"
START_SECONDS, RESTART_SECONDS = 300.0, 120.0


async def measure(site: MusterSite, pods: int, restarts: int) -> dict[str, Any]:
    """Start one job, and let one of its ranks fail several times."""
    before = site.measure_cpu()
    started_at = await site.apply([JOB], pods, failurePolicy={"maxRestarts": restarts})
    status = asyncio.create_task(site.jobs.wait(JOB, all_ranks_run))
    async with asyncio.timeout(START_SECONDS):
        await site.pods.wait_for(pods)
        ranks_at = await site.get_agents().wait_until_running(pods, attempt=1, seconds=START_SECONDS)
        status_at = await status
    start = {
        "created": round(max(site.pods.created.values()) - started_at, 2),
        "pods_running": round(max(site.pods.running.values()) - started_at, 2),
        "ranks_running": round(ranks_at - started_at, 2),
        "status": round(status_at - started_at, 2),
    }
    # py-spy slows down the operator, so it records only the last restart.
    profiles: list[AbstractContextManager[None]] = [nullcontext() for _ in range(restarts - 1)]
    profiles.append(site.profile())
    results = [await _measure_restart(site, pods, attempt + 2, each) for attempt, each in enumerate(profiles)]
    cpu = usage.compute_differences(before, site.measure_cpu())
    return {"pods": pods, "start_seconds": start, "restarts": results, "cpu_seconds": cpu}


async def _measure_restart(
    site: MusterSite, pods: int, attempt: int, profile: AbstractContextManager[None]
) -> dict[str, Any]:
    # The processor time that the operator may use for one job is saved up after a start.
    await asyncio.sleep(10.0)
    before = site.measure_cpu()
    shown = asyncio.create_task(site.jobs.wait(JOB, shows_failure))
    with profile:
        failed_at = (await site.get_agents().fail([(f"{JOB}-{pods // 2}-0", 3)]))[0]
        async with asyncio.timeout(RESTART_SECONDS):
            ranks_at = await site.get_agents().wait_until_running(pods, attempt=attempt, seconds=RESTART_SECONDS)
            status_at = await site.jobs.wait(
                JOB, lambda status: status.get("attempt") == attempt and all_ranks_run(status)
            )
            shown_at = await shown
    return {
        "failure_in_status": round(shown_at - failed_at, 2),
        "ranks_running": round(ranks_at - failed_at, 2),
        "status": round(status_at - failed_at, 2),
        "waited": round(time.monotonic() - failed_at, 2),
        "cpu_seconds": usage.compute_differences(before, site.measure_cpu()),
    }
