"""A fake API server with one job, its ConfigMaps and one pod, whose log and changes of status the tests write."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

from fakes.api_client import api_client
from fakes.api_server import make_failure, merge_patch

NAMESPACE = "team-a"
JOBS = f"/apis/muster.dev/v1alpha1/namespaces/{NAMESPACE}/distributedtrainingjobs"
CONFIG_MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"


@dataclass
class JobCluster:
    """`jobs` and `config_maps` are the stored objects by name.

    Answers in `refusals` are sent once for a request with this method and path (and "?dryRun" for dry runs). The first
    `broken_watches` watches end with an error. `requests` are the changes in their order. The log of the pod ends when
    the job has ended.
    """

    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    config_maps: dict[str, dict[str, Any]] = field(default_factory=dict)
    refusals: dict[str, web.Response] = field(default_factory=dict)
    broken_watches: int = 0
    log: bytes = b""
    has_pod: bool = False
    requests: list[str] = field(default_factory=list)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    _version: int = 1
    _uids: int = 0

    async def tell(self, phase: str, condition: str = "", message: str = "", name: str = "vit") -> None:
        """Write the job's status, as the operator does."""
        job = self.jobs[name]
        conditions = [self.make_condition(condition)] if condition else []
        status = {"phase": phase, "message": message or f"it is {phase}", "conditions": conditions, "attempt": 1}
        job["status"] = {**status, "observedGeneration": job["metadata"]["generation"]}
        await self._notify(job)

    @staticmethod
    def make_condition(condition: str) -> dict[str, str]:
        """Return a condition that is True."""
        return {"type": condition, "status": "True", "reason": condition, "lastTransitionTime": "2026-11-21T05:00:00Z"}

    async def until(self, request: str) -> None:
        """Wait until a change was requested."""
        async with asyncio.timeout(60.0), self.changed:
            await self.changed.wait_for(lambda: request in self.requests)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer one request."""
        parameters = "?dryRun" if request.query.get("dryRun") else ""
        refusal = self.refusals.pop(f"{request.method} {request.path}{parameters}", None)
        if refusal is not None:
            return refusal
        if request.path.startswith(PODS):
            return await self._answer_pod(request)
        objects = self.jobs if request.path.startswith(JOBS) else self.config_maps
        if request.method == "POST":
            return await self._create(objects, await request.json(), request.path.rpartition("/")[2], parameters)
        return await (self._watch(request) if "watch" in request.query else self._answer(objects, request))

    async def _answer(self, objects: dict[str, dict[str, Any]], request: web.Request) -> web.Response:
        """Answer a request for one object."""
        name = request.path.rpartition("/")[2]
        if name not in objects:
            return make_failure(404, "NotFound", f'distributedtrainingjobs.muster.dev "{name}" not found')
        if request.method == "DELETE":
            await self._record(f"DELETE {name}")
            await self._notify(objects.pop(name))
            return web.json_response({"kind": "Status", "status": "Success"})
        if request.method == "PATCH":
            body = await request.json()
            objects[name] = merge_patch(objects[name], body)
            objects[name]["metadata"]["generation"] += 1
            await self._record(f"PATCH {name} {json.dumps(body['spec'])}")
            await self._notify(objects[name])
        return web.json_response(objects[name])

    async def _create(
        self, objects: dict[str, dict[str, Any]], body: dict[str, Any], kind: str, parameters: str
    ) -> web.Response:
        name = body["metadata"]["name"]
        if name in objects:
            return make_failure(409, "AlreadyExists", f"{name} exists")
        if not parameters:
            self._uids += 1
            made = {"uid": f"u-{self._uids}", "generation": 1, "namespace": NAMESPACE, "resourceVersion": "1"}
            objects[name] = {**body, "metadata": {**body["metadata"], **made}}
            await self._record(f"POST {kind} {name}")
        return web.json_response({**body, **objects.get(name, {})})

    async def _record(self, request: str) -> None:
        async with self.changed:
            self.requests.append(request)
            self.changed.notify_all()

    async def _notify(self, job: dict[str, Any]) -> None:
        async with self.changed:
            self._version += 1
            job["metadata"]["resourceVersion"] = str(self._version)
            self.changed.notify_all()

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        """Send the job after each change; after its deletion DELETED."""
        if self.broken_watches:
            self.broken_watches -= 1
            return make_failure(503, "ServiceUnavailable", "the API server starts")
        name, seen = request.query["fieldSelector"].partition("=")[2], int(request.query["resourceVersion"])
        response = web.StreamResponse()
        await response.prepare(request)
        while name in self.jobs:
            async with self.changed:
                await self.changed.wait_for(lambda: self._version > seen or name not in self.jobs)  # noqa: B023 - awaited here
            seen = self._version
            if name in self.jobs:
                await response.write(json.dumps({"type": "MODIFIED", "object": self.jobs[name]}).encode() + b"\n")
        await response.write(json.dumps({"type": "DELETED", "object": {"metadata": {"name": name}}}).encode() + b"\n")
        return response

    async def _answer_pod(self, request: web.Request) -> web.StreamResponse:
        name = request.path.rpartition("/")[2]
        if name == "log":
            return await self._read_log(request)
        job: dict[str, Any] = next(iter(self.jobs.values()), {"metadata": {"name": ""}})
        labels = {"muster.dev/node": "0"}
        conditions = {entry["type"] for entry in job.get("status", {}).get("conditions", ())}
        if name != "pods" and "Suspended" in conditions:
            return make_failure(404, "NotFound", "there is no pod")
        phase = "Running" if self.log else "Pending"
        if conditions & {"Complete", "Failed"}:
            phase = "Succeeded"
        pod = {"metadata": {"name": f"{job['metadata']['name']}-0-0", "labels": labels}, "status": {"phase": phase}}
        items = [pod] if self.has_pod else []
        return web.json_response({"metadata": {}, "items": items} if name == "pods" else pod)

    async def _read_log(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for number, line in enumerate(self.log.splitlines()):
            stamp = f"2026-11-21T05:00:00.{number:09}Z "
            if stamp.strip() > request.query.get("sinceTime", ""):
                await response.write(stamp.encode() + line + b"\n")
        return response


@asynccontextmanager
async def served(cluster: JobCluster, folder: Path) -> AsyncIterator[Path]:
    """Serve the cluster; yield its kubeconfig."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", cluster.handle)
    async with api_client(app, folder):
        yield folder / "kubeconfig"
