"""Measures which share of a core an operator uses with many jobs, suspended ones and ones whose agents report.

    python bench/operator_load.py [--jobs 1000] [--nodes 4] [--ranks 8] [--seconds 20]

Controllers, backend and status writer are those of the operator. A separate process is the API server with the jobs'
resources. Pods arrive as from the informer. Reports go directly to the rank store, because bench/collector.py measures
the collector. kopf does not run; it needs about a millisecond per status update. Prints one JSON line.
"""

import argparse
import asyncio
import contextlib
import json
import multiprocessing
import resource as resource_limits
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

from aiohttp import web

from muster.api.config.operator import OperatorConfig
from muster.api.document import JSON, Document
from muster.api.spec.job import Job
from muster.api.timestamps import format_timestamp
from muster.api.validation.validate import validate
from muster.backends.kubernetes.backend import KubernetesBackend
from muster.backends.kubernetes.pod_index import PodIndex
from muster.backends.node_jobs import NodeJobs
from muster.clients.kubernetes.client import Change, Client
from muster.collector.heartbeat import compute_heartbeat_seconds
from muster.collector.pod_directory import PodIdentity
from muster.collector.store import RankStore, UnknownJob
from muster.controller.backends import apply_defaults
from muster.controller.jobs.job_controller import JobControllerDependencies
from muster.controller.jobs.jobs import Jobs
from muster.controller.jobs.processor_queue import ProcessorQueue
from muster.controller.status.write_budget import WriteBudget
from muster.controller.status.writer import StatusWriterDependencies
from muster.core.actions import Action
from muster.core.edited_source import RequestedSource
from muster.core.facts import JobFacts
from muster.objects.kubernetes.kinds import JOBS, Object
from muster.render.kubernetes import render
from muster.render.kubernetes.pod_settings import PodSettings
from muster_worker.contract.schema import AgentPhase, RankReport, RankState, Report

SETTING = PodSettings("cluster.local", "https://muster-collector.muster-system.svc:8443", "muster-agent-0")
SETTLE_SECONDS = 0.5
TICK_SECONDS = 0.05


@dataclass(frozen=True)
class Size:
    """The numbers of jobs, nodes and ranks, and the duration."""

    jobs: int
    nodes: int
    ranks: int
    seconds: float


def make_resource(number: int, size: Size, created: str, *, suspended: bool) -> Object:
    """Return a running or suspended job, as the API server returns it."""
    spec: dict[str, JSON] = {
        "nodes": size.nodes,
        "procsPerNode": size.ranks,
        "launcher": {"torchrun": {}},
        "image": "registry.example/train:1",
        "command": ["python", "train.py"],
        "suspend": suspended,
    }
    running: dict[str, JSON] = {"phase": "Running", "attempt": 1, "startTime": created}
    return {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.name,
        "metadata": {
            "name": f"job-{number}",
            "namespace": "bench",
            "uid": f"uid-{number}",
            "resourceVersion": "1",
            "generation": 1,
            "creationTimestamp": created,
        },
        "spec": spec,
        "status": {"phase": "Suspended"} if suspended else running,
    }


def make_pod(job: Job, node: int, created: str) -> Object:
    """Return the running pod of a node."""
    body = dict(render.render_pod(job, node, 0, SETTING))
    body["metadata"] = {**_get_fields(body, "metadata"), "uid": f"{job.metadata.uid}-{node}", "resourceVersion": "1"}
    body["spec"] = {**_get_fields(body, "spec"), "nodeName": f"machine-{node}"}
    body["status"] = {
        "phase": "Running",
        "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": created}],
        "containerStatuses": [{"name": "trainer", "state": {"running": {"startedAt": created}}}],
    }
    return body


def make_report(job_uid: str, node: int, size: Size, sequence: int) -> Report:
    """Return a heartbeat of a node with running ranks, some steps after the previous heartbeat."""
    ranks = tuple(
        RankReport(
            rank=node * size.ranks + local,
            local_rank=local,
            state=RankState.RUNNING,
            pid=4000 + local,
            started_age=5.0,
            step=10 * sequence,
            step_age=0.25,
            rss_bytes=2**31,
        )
        for local in range(size.ranks)
    )
    return Report(job_uid, node, 0, 1, sequence, AgentPhase.RUNNING, "10.0.0.1", 29500, ranks=ranks)


class Server:
    """An API server that stores jobs, accepts all other requests, and counts requests."""

    def __init__(self, resources: list[Object]) -> None:
        self.resources_by_name = {str(_get_fields(one, "metadata")["name"]): dict(one) for one in resources}
        self.requests = 0

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer a request."""
        self.requests += 1
        body = await request.json() if request.can_read_body else {}
        if request.method != "PATCH":
            return web.json_response(body)
        current = self.resources_by_name[request.path.split("/")[-2]]
        status = current.get("status")
        current["status"] = _merge(status, body["status"])
        metadata = _get_fields(current, "metadata")
        current["metadata"] = {**metadata, "resourceVersion": str(int(str(metadata["resourceVersion"])) + 1)}
        return web.json_response(current)


def _get_fields(source: Object, part: str) -> dict[str, JSON]:
    fields = source.get(part)
    return fields if isinstance(fields, dict) else {}


def _merge(target: JSON, patch: JSON) -> JSON:
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = _merge(result.get(key), value)
    return result


def run_api_server(resources: list[Object], pipe: Connection) -> None:
    """Run the API server's process. Sends its port, and the number of requests each time the parent requests it."""
    asyncio.run(_serve(resources, pipe))


async def _serve(resources: list[Object], pipe: Connection) -> None:
    server = Server(resources)
    app = web.Application(client_max_size=2**26)
    app.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    pipe.send(site.port)
    loop = asyncio.get_running_loop()
    while await loop.run_in_executor(None, pipe.recv):
        pipe.send(server.requests)
    await runner.cleanup()


@contextlib.asynccontextmanager
async def api_server(resources: list[Object]) -> AsyncIterator[tuple[Client, Connection]]:
    """Start an API server for the `with` block. Yields a client and the pipe to the server's process."""
    spawn = multiprocessing.get_context("spawn")
    parent_end, child_end = spawn.Pipe()
    process = spawn.Process(target=run_api_server, args=(resources, child_end))
    process.start()
    port = await asyncio.get_running_loop().run_in_executor(None, parent_end.recv)
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "bench",
        "clusters": [{"name": "bench", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "bench", "user": {}}],
        "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
    }
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = Path(folder) / "kubeconfig"
        kubeconfig.write_text(json.dumps(config), encoding="utf-8")
        client = await Client.connect(str(kubeconfig))
        try:
            yield client, parent_end
        finally:
            await client.close()
            parent_end.send(False)
            process.join()


@dataclass
class ReconcileCounter:
    """A backend that counts reconciliations."""

    backend: KubernetesBackend
    count: int = 0

    async def observe(self, job: Job) -> JobFacts:
        """Start a reconciliation."""
        self.count += 1
        return await self.backend.observe(job)

    async def apply(self, job: Job, actions: Sequence[Action]) -> None:
        """End a reconciliation."""
        await self.backend.apply(job, actions)

    async def find_source(self, job: Job, name: str) -> RequestedSource:
        """Find a job's edited code."""
        return await self.backend.find_source(job, name)

    def forget(self, job_uid: str) -> None:
        """Drop the data of a deleted job."""
        self.backend.forget(job_uid)


@dataclass
class Usage:
    """CPU and wall time since its creation, in seconds."""

    cpu: float = field(default_factory=time.process_time)
    wall: float = field(default_factory=time.monotonic)

    @property
    def cpu_seconds(self) -> float:
        """CPU seconds of this process."""
        return time.process_time() - self.cpu

    @property
    def wall_seconds(self) -> float:
        """Wall seconds."""
        return time.monotonic() - self.wall

    @property
    def cores(self) -> float:
        """The share of a core that was used."""
        return self.cpu_seconds / self.wall_seconds


async def measure_load(size: Size, *, suspended: bool) -> dict[str, float]:
    """Add all jobs at once, then measure for `size.seconds`."""
    created = format_timestamp(time.time() - 60.0)
    resources = [make_resource(number, size, created, suspended=suspended) for number in range(size.jobs)]
    async with api_server(resources) as (client, pipe):
        store, pods = RankStore(), PodIndex(lambda _: None, time.time)
        counter = ReconcileCounter(
            KubernetesBackend(client, pods, store, SETTING, lambda: "authority", lambda: b"", time.time)
        )
        status_writer = StatusWriterDependencies(client, WriteBudget(), time.time, lambda *_: None, lambda: True)
        dependencies = JobControllerDependencies(
            {"Kubernetes": NodeJobs(counter, 1)},
            *(store, status_writer, partial(apply_defaults, config=OperatorConfig()), lambda _: None),
            *(time.time, ProcessorQueue(time.thread_time), lambda: 0.5),
        )
        jobs = Jobs(dependencies, lambda _: None, lambda _: None, lambda: None)
        if not suspended:
            _add_pods(pods, resources, created)
        usage = Usage()
        for each in resources:
            jobs.handle_change(Change("ADDED", each))
        await _settle(counter, pipe)
        starting = {"start_s": usage.wall_seconds - SETTLE_SECONDS, "start_cpu_s": usage.cpu_seconds}
        if not suspended:
            await _send_first_reports(store, resources, size)
        before, usage = (counter.count, _read_request_count(pipe)), Usage()
        reports = 0 if suspended else await _send_reports(store, resources, size)
        await asyncio.sleep(max(0.0, size.seconds - usage.wall_seconds))
        result = {
            **starting,
            "cores": usage.cores,
            "reports_per_s": reports / usage.wall_seconds,
            "turns_per_s": (counter.count - before[0]) / usage.wall_seconds,
            "requests_per_s": (_read_request_count(pipe) - before[1]) / usage.wall_seconds,
            "peak_mib": resource_limits.getrusage(resource_limits.RUSAGE_SELF).ru_maxrss / 2**10,
        }
        await jobs.stop(1.0)
        return {name: round(value, 3) for name, value in result.items()}


def _add_pods(pods: PodIndex, resources: Sequence[Object], created: str) -> None:
    for each in resources:
        job = validate(Document(dict(each)))
        for node in range(job.spec.nodes):
            pods.handle_change(Change("ADDED", make_pod(job, node, created)))


async def _settle(counter: ReconcileCounter, pipe: Connection) -> None:
    """Wait until no job is reconciled and no status is written."""
    before, current = None, (0, 0)
    while before != current:
        await asyncio.sleep(SETTLE_SECONDS)
        before, current = current, (counter.count, _read_request_count(pipe))


async def _send_first_reports(store: RankStore, resources: Sequence[Object], size: Size) -> None:
    """Send a first report of each agent, so that later ones are heartbeats without changes."""
    for each in resources:
        for node in range(size.nodes):
            _record_report(store, str(_get_fields(each, "metadata")["uid"]), node, size, 1)
        await asyncio.sleep(0.005)
    await asyncio.sleep(5.0)


async def _send_reports(store: RankStore, resources: Sequence[Object], size: Size) -> int:
    """Send reports at the collector's heartbeat interval until the time is over. Returns their number."""
    uids = [str(_get_fields(each, "metadata")["uid"]) for each in resources]
    agents = [(uid, node) for node in range(size.nodes) for uid in uids]
    per_second = len(agents) / compute_heartbeat_seconds(len(agents))
    started, sent = time.monotonic(), 0
    while (elapsed := time.monotonic() - started) < size.seconds:
        while sent < elapsed * per_second:
            uid, node = agents[sent % len(agents)]
            _record_report(store, uid, node, size, 2 + sent // len(agents))
            sent += 1
        await asyncio.sleep(TICK_SECONDS)
    return sent


def _record_report(store: RankStore, uid: str, node: int, size: Size, sequence: int) -> None:
    with contextlib.suppress(UnknownJob):
        store.record_report(PodIdentity(uid, node, 0), make_report(uid, node, size, sequence), time.time())


def _read_request_count(pipe: Connection) -> int:
    pipe.send(True)
    count: int = pipe.recv()
    return count


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--nodes", type=int, default=4, help="agents of each job")
    parser.add_argument("--ranks", type=int, default=8, help="ranks of each agent")
    parser.add_argument("--seconds", type=float, default=20.0, help="duration of each measurement")
    options = parser.parse_args()
    size = Size(options.jobs, options.nodes, options.ranks, options.seconds)
    suspended_result = asyncio.run(measure_load(size, suspended=True))
    reporting = asyncio.run(measure_load(size, suspended=False))
    print(json.dumps({"bench": "operator_load", **vars(options), "at_rest": suspended_result, "reporting": reporting}))


if __name__ == "__main__":
    main()
