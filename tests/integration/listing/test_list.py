"""`muster list` and `muster top` against an API server with some jobs."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from aiohttp import web

from cluster.terminal import CTRL_C, Terminal
from fakes.api_client import api_client
from muster.api.document import JSON
from muster.cli.listing.watched_jobs import WatchedJobs
from support.muster_process import MUSTER, run_with_kubeconfig

JOBS = "/apis/muster.dev/v1alpha1/distributedtrainingjobs"
TEAM_JOBS = "/apis/muster.dev/v1alpha1/namespaces/team-a/distributedtrainingjobs"
NO_KIND = {"kind": "Status", "status": "Failure", "code": 404, "reason": "NotFound", "message": "page not found"}


def make_job(name: str, phase: str, message: str = "", namespace: str = "team-a") -> dict[str, JSON]:
    metadata: dict[str, JSON] = {"name": name, "namespace": namespace, "resourceVersion": "7"}
    status: dict[str, JSON] = {"phase": phase, "message": message or f"it is {phase}", "attempt": 1}
    return {"metadata": metadata, "spec": {"nodes": 2}, "status": status}


@dataclass
class JobServer:
    """Answers lists in pages of two jobs, and a watch with `changes`. The first `failures` watches fail."""

    jobs: list[dict[str, JSON]]
    changes: "asyncio.Queue[dict[str, JSON]]" = field(default_factory=asyncio.Queue)
    failures: list[web.Response] = field(default_factory=list)
    has_kind: bool = True
    paths: list[str] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        assert request.method == "GET"
        self.paths.append(request.path)
        if not self.has_kind or request.path not in (JOBS, TEAM_JOBS):
            return web.json_response(NO_KIND, status=404)
        if "watch" in request.query:
            return self.failures.pop(0) if self.failures else await self._watch(request)
        start = int(request.query.get("continue", "0"))
        more = {"continue": str(start + 2)} if start + 2 < len(self.jobs) else {}
        items = self.jobs[start : start + 2]
        return web.json_response({"kind": "List", "metadata": {"resourceVersion": "1", **more}, "items": items})

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            change = await self.changes.get()
            await response.write(json.dumps(change).encode() + b"\n")


@asynccontextmanager
async def served(server: JobServer, folder: Path) -> AsyncIterator[WatchedJobs]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.answer)
    async with api_client(app, folder) as client:
        yield WatchedJobs(client, None)


async def run(server: JobServer, folder: Path, *words: str) -> tuple[int, str, str]:
    async with served(server, folder):
        return await run_with_kubeconfig(folder / "kubeconfig", *words)


def three() -> JobServer:
    return JobServer(
        [
            make_job("b", "Running"),
            make_job("c", "Failed", "Rank 2 on c-1 exited with 3"),
            make_job("a", "Queued", namespace="team-b"),
        ]
    )


async def test_all_pages_are_listed_by_name(tmp_path: Path) -> None:
    code, output, messages = await run(three(), tmp_path, "list", "--all-namespaces")
    assert (code, messages) == (0, "")
    title, *lines = output.splitlines()
    assert title.split()[:4] == ["NAMESPACE", "NAME", "BACKEND", "PHASE"]
    assert [line.split()[:4] for line in lines] == [
        ["team-a", "b", "Kubernetes", "Running"],
        ["team-a", "c", "Kubernetes", "Failed"],
        ["team-b", "a", "Kubernetes", "Queued"],
    ]
    assert lines[1].endswith("Rank 2 on c-1 exited with 3")


async def test_top_prints_once_without_a_terminal(tmp_path: Path) -> None:
    server = three()
    code, output, messages = await run(server, tmp_path, "top", "-n", "team-a")
    assert (code, messages) == (0, "")
    assert [line.split()[0] for line in output.splitlines()] == ["NAME", "c", "b", "a"]
    assert set(server.paths) == {TEAM_JOBS}


async def test_a_kubeconfig_that_only_the_official_client_reads(tmp_path: Path) -> None:
    async with served(three(), tmp_path):
        two_files = f"{tmp_path / 'kubeconfig'}:{tmp_path / 'other'}"
        _, output, _ = await run_with_kubeconfig(two_files, "list", "-A")
    assert len(output.splitlines()) == 4


async def test_no_jobs(tmp_path: Path) -> None:
    code, output, messages = await run(JobServer([]), tmp_path, "list", "-n", "team-a")
    assert (code, output, messages) == (0, "", "team-a: there are no DistributedTrainingJobs\n")


@pytest.mark.parametrize("command", ["list", "top"])
async def test_a_cluster_without_muster(command: str, tmp_path: Path) -> None:
    code, output, messages = await run(JobServer([], has_kind=False), tmp_path, command)
    assert (code, output) == (2, "")
    assert messages.startswith("muster: the cluster has no DistributedTrainingJobs: muster isn't installed there")


@pytest.mark.parametrize("command", ["list", "top"])
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-n", "Team A"], "is not a namespace's name"),
        (["-n", "a", "-A"], "use either --namespace or --all-namespaces"),
    ],
)
async def test_bad_options(command: str, words: list[str], message: str, tmp_path: Path) -> None:
    code, output, messages = await run(three(), tmp_path, command, *words)
    assert (code, output) == (2, "")
    assert message in messages


async def test_the_terminal_follows_the_jobs_until_ctrl_c(tmp_path: Path) -> None:
    server = three()
    async with served(server, tmp_path):
        environment = {**os.environ, "KUBECONFIG": str(tmp_path / "kubeconfig")}
        with Terminal([str(MUSTER), "top", "-A"], environment) as terminal:
            await asyncio.to_thread(terminal.until, lambda text: "all namespaces  ·  3 jobs: 1 failed" in text)
            server.changes.put_nowait({"type": "MODIFIED", "object": make_job("b", "Failed")})
            server.changes.put_nowait({"type": "DELETED", "object": make_job("a", "Queued", namespace="team-b")})
            await asyncio.to_thread(terminal.until, lambda text: "2 jobs: 2 failed" in text)
            terminal.press(CTRL_C)
            assert await asyncio.to_thread(terminal.end) == 0
            assert "Traceback" not in terminal.text


async def test_a_watch_that_fails_is_begun_again(tmp_path: Path) -> None:
    server = three()
    server.failures += [web.Response(status=503, text="away"), web.Response(status=410, text="too old")]
    async with served(server, tmp_path) as jobs:
        await jobs.load()
        following = asyncio.create_task(jobs.follow())
        server.changes.put_nowait({"type": "ADDED", "object": make_job("d", "Running")})
        async with asyncio.timeout(60):
            while len(jobs.rows) < 4:  # noqa: ASYNC110 - a change has no event
                await asyncio.sleep(0.01)
        following.cancel()
    assert jobs.problem == ""


async def test_the_resources_as_a_list(tmp_path: Path) -> None:
    server = three()
    code, output, messages = await run(server, tmp_path, "list", "-A", "-o", "json")
    listed = json.loads(output)
    assert (code, messages, listed["kind"]) == (0, "", "List")
    kind = {"apiVersion": "muster.dev/v1alpha1", "kind": "DistributedTrainingJob"}
    assert listed["items"] == [{**kind, **job} for job in server.jobs]
    code, output, messages = await run(JobServer([]), tmp_path, "list", "-A", "-o", "json")
    assert (code, messages, json.loads(output)["items"]) == (0, "", [])
