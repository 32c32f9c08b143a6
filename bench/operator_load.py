"""What an operator of many jobs takes of a core: jobs at rest, and jobs whose agents report at the collector's pace.

    python bench/operator_load.py [--jobs 1000] [--nodes 4] [--ranks 8] [--seconds 20]

Controllers, backend and status writer are the operator's own; the API server is another process that keeps the jobs'
resources, and pods are reported as by the informer. Reports are handed to the rank store: what the collector takes
for each is bench/collector.py's to say, what kopf takes for each status that is written is about a millisecond. Prints
one JSON line.
"""

import argparse
import asyncio
import contextlib
import json
import multiprocessing
import resource as limits
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
from muster.api.timestamps import to_seconds
from muster.api.validation.validate import validate
from muster.backends.kubernetes.backend import KubernetesBackend
from muster.backends.kubernetes.pod_index import PodIndex
from muster.backends.node_jobs import NodeJobs
from muster.clients.kubernetes.client import Change, Client
from muster.collector.directory import Member
from muster.collector.pace import heartbeat_seconds
from muster.collector.store import RankStore, UnknownJob
from muster.controller.backends import apply_defaults
from muster.controller.jobs.job_controller import JobControllerDependencies
from muster.controller.jobs.jobs import Jobs
from muster.controller.jobs.processor_queue import ProcessorQueue
from muster.controller.status.write_budget import WriteBudget
from muster.controller.status.writer import StatusWriterDependencies
from muster.core.actions import Action
from muster.core.facts import JobFacts
from muster.objects.kubernetes.kinds import JOBS, Object
from muster.render.kubernetes import render
from muster.render.kubernetes.setting import Setting
from muster_worker.contract.schema import AgentPhase, RankReport, RankState, Report

SETTING = Setting("cluster.local", "https://muster-collector.muster-system.svc:8443")
SETTLE_SECONDS = 0.5
TICK_SECONDS = 0.05


@dataclass(frozen=True)
class Size:
    """How much there is of each."""

    jobs: int
    nodes: int
    ranks: int
    seconds: float


def resource(number: int, size: Size, created: str, *, suspended: bool) -> Object:
    """A job that runs, or is suspended, as the API server has it."""
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


def pod(job: Job, node: int, created: str) -> Object:
    """A node's pod that runs."""
    body = dict(render.pod(job, node, 0, SETTING))
    body["metadata"] = {**_fields(body, "metadata"), "uid": f"{job.metadata.uid}-{node}", "resourceVersion": "1"}
    body["spec"] = {**_fields(body, "spec"), "nodeName": f"machine-{node}"}
    body["status"] = {
        "phase": "Running",
        "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": created}],
        "containerStatuses": [{"name": "trainer", "state": {"running": {"startedAt": created}}}],
    }
    return body


def report(job_uid: str, node: int, size: Size, sequence: int) -> Report:
    """A heartbeat of a node whose ranks all run, some steps further than in the last one."""
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
    """An API server that keeps jobs, takes all else, and tells how many requests it had."""

    def __init__(self, resources: list[Object]) -> None:
        self.kept = {str(_fields(one, "metadata")["name"]): dict(one) for one in resources}
        self.requests = 0

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer a request."""
        self.requests += 1
        body = await request.json() if request.can_read_body else {}
        if request.method != "PATCH":
            return web.json_response(body)
        current = self.kept[request.path.split("/")[-2]]
        status = current.get("status")
        current["status"] = _merged(status, body["status"])
        metadata = _fields(current, "metadata")
        current["metadata"] = {**metadata, "resourceVersion": str(int(str(metadata["resourceVersion"])) + 1)}
        return web.json_response(current)


def _fields(source: Object, part: str) -> dict[str, JSON]:
    fields = source.get(part)
    return fields if isinstance(fields, dict) else {}


def _merged(target: JSON, patch: JSON) -> JSON:
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = _merged(result.get(key), value)
    return result


def keep(resources: list[Object], pipe: Connection) -> None:
    """The API server's process: it says its port, then its count of requests each time that it is asked."""
    asyncio.run(_keep(resources, pipe))


async def _keep(resources: list[Object], pipe: Connection) -> None:
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
    """A client of a server that runs meanwhile."""
    spawn = multiprocessing.get_context("spawn")
    here, there = spawn.Pipe()
    process = spawn.Process(target=keep, args=(resources, there))
    process.start()
    port = await asyncio.get_running_loop().run_in_executor(None, here.recv)
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
            yield client, here
        finally:
            await client.close()
            here.send(False)
            process.join()


@dataclass
class Turns:
    """The backend, counting how often a job was looked at."""

    backend: KubernetesBackend
    count: int = 0

    async def observe(self, job: Job) -> JobFacts:
        """A turn begins."""
        self.count += 1
        return await self.backend.observe(job)

    async def apply(self, job: Job, actions: Sequence[Action]) -> None:
        """A turn ends."""
        await self.backend.apply(job, actions)

    def forget(self, job_uid: str) -> None:
        """The job's resource is gone."""
        self.backend.forget(job_uid)


@dataclass
class Spent:
    """Processor and wall seconds since it was made."""

    cpu: float = field(default_factory=time.process_time)
    wall: float = field(default_factory=time.monotonic)

    @property
    def cpu_seconds(self) -> float:
        """Of this process."""
        return time.process_time() - self.cpu

    @property
    def wall_seconds(self) -> float:
        """Of everybody."""
        return time.monotonic() - self.wall

    @property
    def cores(self) -> float:
        """How much of a core was used."""
        return self.cpu_seconds / self.wall_seconds


async def bench(size: Size, *, suspended: bool) -> dict[str, float]:
    """All jobs heard of at once, then a while of their life."""
    created = to_seconds(time.time() - 60.0)
    resources = [resource(number, size, created, suspended=suspended) for number in range(size.jobs)]
    async with api_server(resources) as (client, pipe):
        store, pods = RankStore(), PodIndex(lambda _: None, time.time)
        turns = Turns(KubernetesBackend(client, pods, store, SETTING, lambda: "authority", lambda: b"", time.time))
        desk = StatusWriterDependencies(client, WriteBudget(), time.time, lambda *_: None, lambda: True)
        tools = JobControllerDependencies(
            {"Kubernetes": NodeJobs(turns, 1)},
            *(store, desk, partial(apply_defaults, config=OperatorConfig()), lambda _: None),
            *(time.time, ProcessorQueue(time.thread_time), lambda: 0.5),
        )
        jobs = Jobs(tools, lambda _: None, lambda _: None, lambda: None)
        if not suspended:
            _show_pods(pods, resources, created)
        spent = Spent()
        for each in resources:
            jobs.take(Change("ADDED", each))
        await _settle(turns, pipe)
        starting = {"start_s": spent.wall_seconds - SETTLE_SECONDS, "start_cpu_s": spent.cpu_seconds}
        if not suspended:
            await _first_reports(store, resources, size)
        before, spent = (turns.count, _requests(pipe)), Spent()
        reports = 0 if suspended else await _reports(store, resources, size)
        await asyncio.sleep(max(0.0, size.seconds - spent.wall_seconds))
        result = {
            **starting,
            "cores": spent.cores,
            "reports_per_s": reports / spent.wall_seconds,
            "turns_per_s": (turns.count - before[0]) / spent.wall_seconds,
            "requests_per_s": (_requests(pipe) - before[1]) / spent.wall_seconds,
            "peak_mib": limits.getrusage(limits.RUSAGE_SELF).ru_maxrss / 2**10,
        }
        await jobs.stop(1.0)
        return {name: round(value, 3) for name, value in result.items()}


def _show_pods(pods: PodIndex, resources: Sequence[Object], created: str) -> None:
    for each in resources:
        job = validate(Document(dict(each)))
        for node in range(job.spec.nodes):
            pods.take(Change("ADDED", pod(job, node, created)))


async def _settle(turns: Turns, pipe: Connection) -> None:
    """Wait until no job has a turn any more, and none is written."""
    before, current = None, (0, 0)
    while before != current:
        await asyncio.sleep(SETTLE_SECONDS)
        before, current = current, (turns.count, _requests(pipe))


async def _first_reports(store: RankStore, resources: Sequence[Object], size: Size) -> None:
    """Every agent is heard once: from then on nothing is news."""
    for each in resources:
        for node in range(size.nodes):
            _hear(store, str(_fields(each, "metadata")["uid"]), node, size, 1)
        await asyncio.sleep(0.005)
    await asyncio.sleep(5.0)


async def _reports(store: RankStore, resources: Sequence[Object], size: Size) -> int:
    """Agents report in turn, as often as the pace says, until the time is over; how many reports there were."""
    uids = [str(_fields(each, "metadata")["uid"]) for each in resources]
    agents = [(uid, node) for node in range(size.nodes) for uid in uids]
    per_second = len(agents) / heartbeat_seconds(len(agents))
    began, sent = time.monotonic(), 0
    while (passed := time.monotonic() - began) < size.seconds:
        while sent < passed * per_second:
            uid, node = agents[sent % len(agents)]
            _hear(store, uid, node, size, 2 + sent // len(agents))
            sent += 1
        await asyncio.sleep(TICK_SECONDS)
    return sent


def _hear(store: RankStore, uid: str, node: int, size: Size, sequence: int) -> None:
    with contextlib.suppress(UnknownJob):
        store.record(Member(uid, node, 0), report(uid, node, size, sequence), time.time())


def _requests(pipe: Connection) -> int:
    pipe.send(True)
    count: int = pipe.recv()
    return count


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--nodes", type=int, default=4, help="agents a job")
    parser.add_argument("--ranks", type=int, default=8, help="ranks an agent")
    parser.add_argument("--seconds", type=float, default=20.0, help="how long each is watched")
    options = parser.parse_args()
    size = Size(options.jobs, options.nodes, options.ranks, options.seconds)
    at_rest = asyncio.run(bench(size, suspended=True))
    reporting = asyncio.run(bench(size, suspended=False))
    print(json.dumps({"bench": "operator_load", **vars(options), "at_rest": at_rest, "reporting": reporting}))


if __name__ == "__main__":
    main()
