"""Scrapes of the operator over HTTP, and clients that overload it."""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import pytest

from muster.api.status.status import Status
from muster.controller.metrics import endpoint
from muster.controller.metrics.definitions import METRICS, MetricKind
from muster.controller.metrics.recorder import MetricsRecorder
from muster.controller.metrics.snapshot import MetricSources
from muster.objects.kubernetes.job_source import JobIdentity
from muster.objects.kubernetes.resource import Resource, read_resource
from support.scraped_metrics import Scrape, parse_scrape
from unit.controller.cluster_resources import CREATED, resource

STATES = ("Running", "Failed", "Unknown")
HTTP = aiohttp.ClientTimeout(total=20)


@dataclass
class Site:
    """An endpoint on `port`, and what it serves."""

    recorder: MetricsRecorder = field(default_factory=lambda: MetricsRecorder(time.time, time.monotonic))
    jobs: tuple[Resource, ...] = ()
    waiting: tuple[JobIdentity, ...] = ()
    leads: bool = True
    requests: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    port: int = 0

    async def get(self, path: str = "/metrics", method: str = "GET") -> tuple[int, str]:
        url = f"http://127.0.0.1:{self.port}{path}"
        async with aiohttp.ClientSession(timeout=HTTP) as client, client.request(method, url) as response:
            return response.status, await response.text()

    async def scrape(self) -> Scrape:
        status, text = await self.get()
        assert status == 200
        return parse_scrape(text)


@asynccontextmanager
async def serving(site: Site) -> AsyncIterator[Site]:
    listening_socket = endpoint.open_listening_socket("127.0.0.1", 0)
    site.port = listening_socket.getsockname()[1]
    sources = MetricSources(
        version="1.2.3",
        is_leader=lambda: site.leads,
        resources=lambda: site.jobs,
        waiting_jobs=lambda: site.waiting,
        refusals=lambda: {"BadToken": 3, "TooFast": 0},
        connections=lambda: 8,
        api_requests=lambda: site.requests,
        aws_requests=lambda: {("sagemaker", "ListTrainingJobs", "none"): 1},
    )
    async with endpoint.serve_metrics(listening_socket, site.recorder, sources):
        yield site


def job(number: int, namespace: str, phase: str = "Running") -> Resource:
    """Return a job of 96 ranks in three states, as the operator keeps it."""
    ranges = [{"state": state, "count": 32, "ranks": "0-31"} for state in STATES]
    ranks: dict[str, Any] = {"world": 96, "running": 32, "ready": "32/96", "byState": ranges}
    status: dict[str, Any] = {"phase": phase, "attempt": 1, "startTime": CREATED, "ranks": ranks}
    metadata: dict[str, Any] = {"namespace": namespace}
    return read_resource(resource(f"job-{number}", uid=f"u-{number}", metadata=metadata, status=status))


async def test_a_scrape_has_all_metrics() -> None:
    waiting = JobIdentity("team", "later", "u-9", "7")
    site = Site(jobs=(job(1, "team"), job(2, "team", "Queued")), waiting=(waiting,))
    site.requests["patch", "distributedtrainingjobs/status", "409"] = 2
    async with serving(site):
        site.recorder.count_write(site.jobs[0], Status(), site.jobs[0].status)
        scrape = await site.scrape()
    names = {metric.name.removesuffix("_total") for metric in METRICS}
    assert names <= set(scrape.families)
    for metric in METRICS:
        family = scrape.families[metric.name.removesuffix("_total")]
        assert (family.type, family.documentation) == (metric.kind.value, metric.help_text)
        extra = {"le"} if metric.kind is MetricKind.HISTOGRAM else set()
        assert {label for sample in family.samples for label in sample.labels} <= {*metric.labels, *extra}
    assert scrape.get_value("muster_leader") == 1
    assert scrape.get_value("muster_build_info", version="1.2.3") == 1
    assert scrape.get_value("muster_jobs", namespace="team", backend="Kubernetes", phase="Queued") == 1
    assert scrape.get_value("muster_jobs", namespace="team", backend="Unknown", phase="Refused") == 1
    assert scrape.get_value("muster_ranks", namespace="team", state="Failed") == 64
    assert scrape.get_value("muster_job_start_seconds_count", backend="Kubernetes") == 1
    assert scrape.get_value("muster_collector_refusals_total", reason="BadToken") == 3
    assert scrape.get_value("muster_collector_connections") == 8
    assert scrape.get_value("muster_api_requests_total", verb="patch", code="409") == 2
    assert scrape.get_value("muster_aws_requests_total", operation="ListTrainingJobs", code="none") == 1
    assert scrape.get_value("process_resident_memory_bytes")


async def test_a_standby_answers_without_jobs() -> None:
    async with serving(Site(leads=False)) as site:
        scrape = await site.scrape()
    assert scrape.get_value("muster_leader") == 0
    assert scrape.get_value("muster_jobs") is None
    assert scrape.get_value("muster_reconciles_total", result="Bug") == 0


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "/", 404), ("POST", "/metrics", 405), ("GET", "/healthz", 404)]
)
async def test_nothing_else_is_answered(method: str, path: str, status: int) -> None:
    async with serving(Site()) as site:
        assert await site.get(path, method) == (status, "")


@pytest.mark.parametrize("namespaces", [1, 1000])
async def test_the_metrics_of_a_thousand_jobs_are_small(namespaces: int) -> None:
    jobs = tuple(job(number, f"team-{number % namespaces}-of-the-company") for number in range(1000))
    async with serving(Site(jobs=jobs)) as site:
        for each in jobs:
            after = each.status.model_copy(update={"phase": "Restarting"})
            site.recorder.count_write(each, Status(), after)
        status, text = await site.get()
        assert (status, len(text) < 1_000_000) == (200, True)
        assert parse_scrape(text).get_value("muster_ranks") == 96_000


async def test_clients_that_scrape_all_the_time_get_the_same_text() -> None:
    async with serving(Site()) as site:
        first = await site.scrape()
        site.requests["get", "pods", "200"] = 1
        scrapes = await asyncio.gather(*(site.scrape() for _ in range(10)))
        assert [scrape.get_value("muster_api_requests_total") for scrape in (first, *scrapes)] == [None] * 11
        await asyncio.sleep(endpoint.REUSE_SECONDS)
        assert (await site.scrape()).get_value("muster_api_requests_total") == 1


async def test_connections_that_ask_nothing_make_place_for_prometheus() -> None:
    async with serving(Site()) as site, contextlib.AsyncExitStack() as stack:
        idle = []
        for _ in range(3 * endpoint.LIMITS.max_connections):
            reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
            stack.callback(writer.close)
            writer.write(b"GET /met")
            idle.append(reader)
        async with asyncio.timeout(60.0):
            await site.scrape()
            with contextlib.suppress(ConnectionResetError):
                assert await idle[0].read() == b""


async def test_a_body_is_not_read() -> None:
    async with serving(Site()) as site:
        reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000\r\n\r\n")
        async with asyncio.timeout(60.0):
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        writer.close()
