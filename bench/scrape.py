"""Measures scrapes of an operator's metrics: their size, their duration, and how long they hold up the event loop.

    python bench/scrape.py [--jobs 1000] [--namespaces 1000] [--scrapes 20]

The jobs have been parsed as in the operator, and each had a restart. Scrapes go over HTTP. Prints one JSON line.
"""

import argparse
import asyncio
import json
import statistics
import sys
import time

import aiohttp

from muster.api.document import JSON
from muster.api.status.status import Status
from muster.controller.metrics import endpoint
from muster.controller.metrics.recorder import MetricsRecorder
from muster.controller.metrics.snapshot import MetricSources
from muster.controller.serve import SWITCH_INTERVAL_SECONDS
from muster.objects.kubernetes.kinds import JOBS
from muster.objects.kubernetes.resource import Resource, read_resource

CREATED = "2026-11-21T04:05:19Z"
TICK_SECONDS = 0.001


def make_job(number: int, namespaces: int) -> Resource:
    """Return a job whose ranks have three states and that had a restart."""
    counts = {"Running": 30, "Failed": 1, "Unknown": 1}
    ranges: list[JSON] = [{"state": state, "count": count, "ranks": "0"} for state, count in counts.items()]
    record: dict[str, JSON] = {
        "attempt": 1,
        "reason": "RankKilled",
        "message": "rank 3 was killed",
        "countsAs": "Failure",
        "at": CREATED,
        "secondsLost": 1.5,
    }
    restarts: dict[str, JSON] = {"total": 1, "failures": 1, "disruptions": 0, "replacement": 0, "history": [record]}
    status: dict[str, JSON] = {
        "phase": "Running",
        "attempt": 2,
        "startTime": CREATED,
        "restarts": restarts,
        "ranks": {"world": 32, "running": 30, "ready": "30/32", "byState": ranges},
    }
    metadata: dict[str, JSON] = {
        "name": f"job-{number}",
        "namespace": f"team-{number % namespaces}",
        "uid": f"uid-{number}",
        "resourceVersion": "1",
        "generation": 1,
        "creationTimestamp": CREATED,
    }
    spec: dict[str, JSON] = {"launcher": {"torchrun": {}}, "image": "i", "command": ["python", "train.py"]}
    source: dict[str, JSON] = {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.name,
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }
    return read_resource(source)


async def measure_delay(longest: list[float]) -> None:
    """Store the longest time for which the event loop did not run this task."""
    while True:
        begun = time.monotonic()
        await asyncio.sleep(TICK_SECONDS)
        longest[0] = max(longest[0], time.monotonic() - begun - TICK_SECONDS)


async def measure_scrapes(options: argparse.Namespace) -> dict[str, float]:
    """Scrape an endpoint with all jobs."""
    jobs = tuple(make_job(number, options.namespaces) for number in range(options.jobs))
    recorder, longest = MetricsRecorder(time.time, time.monotonic), [0.0]
    for job in jobs:
        recorder.count_write(job, Status(), job.status)
    no_requests = dict[tuple[str, str, str], int]
    sources = MetricSources("1", lambda: True, lambda: jobs, tuple, dict, lambda: 0, no_requests, no_requests)
    listening_socket = endpoint.open_listening_socket("127.0.0.1", 0)
    url = f"http://127.0.0.1:{listening_socket.getsockname()[1]}{endpoint.PATH}"
    seconds, cpu, text = [], [], b""
    async with endpoint.serve_metrics(listening_socket, recorder, sources), aiohttp.ClientSession() as client:
        for _ in range(options.scrapes):
            await asyncio.sleep(endpoint.REUSE_SECONDS)
            watch = asyncio.create_task(measure_delay(longest))
            await asyncio.sleep(10 * TICK_SECONDS)
            begun = time.monotonic(), time.process_time()
            async with client.get(url) as response:
                text = await response.read()
            seconds.append(time.monotonic() - begun[0])
            cpu.append(time.process_time() - begun[1])
            watch.cancel()
    return {
        "kb": round(len(text) / 1e3, 1),
        "median_ms": round(statistics.median(seconds) * 1e3, 1),
        "max_ms": round(max(seconds) * 1e3, 1),
        "median_cpu_ms": round(statistics.median(cpu) * 1e3, 1),
        "max_loop_delay_ms": round(longest[0] * 1e3, 1),
    }


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--namespaces", type=int, default=1000)
    parser.add_argument("--scrapes", type=int, default=20)
    options = parser.parse_args()
    sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)
    print(json.dumps({"bench": "scrape", **vars(options), **asyncio.run(measure_scrapes(options))}))


if __name__ == "__main__":
    main()
