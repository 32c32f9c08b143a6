"""Measures an operator with many running jobs: its usage, its restart, and the hand-over to another replica."""

import asyncio
import json
import re
import signal
import sys
import time
from collections import Counter
from typing import Any
from urllib.request import urlopen

from cluster.operator.operator_process import OperatorProcess
from scaling import usage
from scaling.failures import make_failure, make_names
from scaling.job_watch import all_ranks_run, shows_failure
from scaling.muster_site import MusterSite

BATCH_JOBS = 100
"""The jobs are created in batches of this number, so that the start takes little memory."""

SOAK_SAMPLES = 12

START_SECONDS, SETTLE_SECONDS, CONTACT_SECONDS, READY_SECONDS = 300.0, 10.0, 120.0, 60.0
POLL_SECONDS, METRICS_SECONDS = 0.02, 10.0
_LAG_BUCKET = re.compile(r'^muster_event_loop_lag_seconds_bucket\{le="([^"]+)"\} (\S+)$', re.MULTILINE)
_WRITES = re.compile(r'^muster_status_writes_total\{kind="(\w+)"\} (\S+)$', re.MULTILINE)


async def measure(site: MusterSite, jobs: int, pods: int, seconds: float) -> dict[str, Any]:
    """Start jobs, and measure while their ranks only make progress. Then restart and replace the operator."""
    names, started_at = make_names(jobs), time.monotonic()
    await _start_jobs(site, names, pods)
    start = round(time.monotonic() - started_at, 1)
    await asyncio.sleep(SETTLE_SECONDS)
    with site.profile():
        steady = await measure_usage(site, seconds)
    result: dict[str, Any] = {"jobs": jobs, "agents": jobs * pods, "start_seconds": start, "steady": steady}
    _show(result)
    result["restart"] = await _measure_restart(site, names)
    _show(result["restart"])
    result["graceful_hand_over"] = await _measure_hand_over(site, names[:-2], signal.SIGTERM)
    _show(result["graceful_hand_over"])
    result["crash_hand_over"] = await _measure_hand_over(site, names[:-2], signal.SIGKILL)
    return result


async def measure_soak(site: MusterSite, jobs: int, pods: int, seconds: float) -> dict[str, Any]:
    """Start jobs, and measure the operator's memory and usage in each of `SOAK_SAMPLES` equal intervals."""
    await _start_jobs(site, make_names(jobs), pods)
    await asyncio.sleep(SETTLE_SECONDS)
    samples = []
    for _ in range(SOAK_SAMPLES):
        samples.append(await measure_usage(site, seconds / SOAK_SAMPLES))
        _show(samples[-1])
    memory = [sample["operator_mib"] for sample in samples]
    # The first intervals fill caches and the allocator's arenas.
    middle = len(memory) // 2
    return {
        "jobs": jobs,
        "agents": jobs * pods,
        "seconds": seconds,
        "operator_mib": memory,
        "growth_in_second_half_mib": round(memory[-1] - memory[middle], 1),
        "loop_lag_p99_below": [sample["loop_lag_p99_below"] for sample in samples],
        "status_writes_per_second": [sample["status_writes_per_second"] for sample in samples],
        "cores": samples[-1]["cores"],
    }


async def _start_jobs(site: MusterSite, names: list[str], pods: int) -> None:
    for first in range(0, len(names), BATCH_JOBS):
        await site.start(names[first : first + BATCH_JOBS], pods, START_SECONDS)


def _show(result: dict[str, Any]) -> None:
    """Print a result at once, because the next ones take minutes."""
    print(json.dumps(result), file=sys.stderr, flush=True)


async def measure_usage(site: MusterSite, seconds: float) -> dict[str, Any]:
    """Measure all components for this time."""
    cpu, before, began = site.measure_cpu(), await _read_metrics(site), time.monotonic()
    agents_before = await site.get_agents().request(do="count")
    await asyncio.sleep(seconds)
    after, took = await _read_metrics(site), time.monotonic() - began
    agents_after = await site.get_agents().request(do="count")
    used = usage.compute_differences(cpu, site.measure_cpu())
    writes = {kind: after.writes[kind] - before.writes[kind] for kind in after.writes}
    return {
        "seconds": round(took, 1),
        "cores": {name: round(value / took, 3) for name, value in used.items()},
        "operator_mib": usage.measure_resident_mib(site.operator.pids),
        "operator_peak_mib": usage.measure_peak_mib(site.operator.pids),
        "status_writes_per_second": {kind: round(count / took, 1) for kind, count in writes.items()},
        "reports_per_second": round((agents_after["reports"] - agents_before["reports"]) / took, 1),
        "polls_per_second": round((agents_after["polls"] - agents_before["polls"]) / took, 1),
        "loop_lag_p99_below": _find_p99(after.lag - before.lag),
    }


class _Metrics:
    """The metrics of the operator that the benchmark uses: loop lags by bucket, and status writes by kind."""

    def __init__(self, text: str) -> None:
        self.lag = Counter({float(bound): int(float(count)) for bound, count in _LAG_BUCKET.findall(text)})
        self.writes = {kind: int(float(count)) for kind, count in _WRITES.findall(text)}


async def _read_metrics(site: MusterSite) -> _Metrics:
    url = f"http://127.0.0.1:{site.operator.metrics_port}/metrics"
    return _Metrics(await asyncio.to_thread(_get, url))


def _get(url: str) -> str:
    with urlopen(url, timeout=METRICS_SECONDS) as response:  # noqa: S310 - the URL is of this machine
        text: str = response.read().decode()
        return text


def _find_p99(buckets: Counter[float]) -> float | None:
    """Return the bound of the bucket with the 99th percentile. Buckets are cumulative."""
    total = max(buckets.values(), default=0)
    return next((bound for bound, count in sorted(buckets.items()) if total and count >= 0.99 * total), None)


async def _measure_restart(site: MusterSite, names: list[str]) -> dict[str, Any]:
    """Kill the operator and start it again. Meanwhile a rank of a job and a pod of another one fail.

    The API server knows of the pod; of the rank, the operator learns from its agent. All other statuses must stay.
    """
    *others, failed_pod, failing = names
    site.jobs.phases.clear()
    killed_at = time.monotonic()
    await asyncio.to_thread(site.operator.end)
    await site.get_agents().fail([(f"{failing}-0-0", 0)])
    await site.api.send_all([make_failure(site.namespace, f"{failed_pod}-1-0")])
    started_at = time.monotonic()
    await asyncio.to_thread(site.operator.start)
    ready_at = time.monotonic()
    shown, pod_shown = (asyncio.create_task(site.jobs.wait(name, shows_failure)) for name in (failing, failed_pod))
    contact = await site.get_agents().request(do="wait_for_contact", since=started_at, seconds=CONTACT_SECONDS)
    result = {"ready": round(ready_at - killed_at, 2), "contact": contact}
    result["failed_pod_shown"] = round(await pod_shown - started_at, 2)
    result["failed_rank_shown"] = round(await shown - started_at, 2)
    return await _finish(site, others, result)


async def _measure_hand_over(site: MusterSite, names: list[str], number: signal.Signals) -> dict[str, Any]:
    """Start a standby, end the leader, and wait until the standby leads and all agents report to it."""
    standby = await asyncio.to_thread(site.operators.start)
    site.jobs.phases.clear()
    leader, ended_at = site.operator, time.monotonic()
    ending = asyncio.create_task(asyncio.to_thread(leader.signal, number))
    await _wait_until_leading(standby)
    leading_at = time.monotonic()
    await ending
    # The standby is the operator from now on.
    site.operators.started.remove(leader)
    contact = await site.get_agents().request(do="wait_for_contact", since=leading_at, seconds=CONTACT_SECONDS)
    return await _finish(site, names, {"leads": round(leading_at - ended_at, 2), "contact": contact})


async def _wait_until_leading(standby: OperatorProcess) -> None:
    async with asyncio.timeout(READY_SECONDS):
        while not standby.leads:  # noqa: ASYNC110 - the process only writes a log
            await asyncio.sleep(POLL_SECONDS)


async def _finish(site: MusterSite, names: list[str], result: dict[str, Any]) -> dict[str, Any]:
    await asyncio.sleep(SETTLE_SECONDS)
    not_running = [name for name in names if not all_ranks_run(site.jobs.statuses[name])]
    wrong = [name for name in names if site.jobs.phases.get(name, set()) - {"Running"}]
    messages = sorted({site.jobs.statuses[name]["message"][:200] for name in not_running})[:3]
    return {**result, "wrong_phase": len(wrong), "not_running": len(not_running), "messages": messages}
