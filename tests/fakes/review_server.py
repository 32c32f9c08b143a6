"""A fake API server that answers TokenReviews and SubjectAccessReviews, and has jobs to list and watch."""

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
from fakes.api_server import make_failure
from muster.clients.kubernetes.client import Client

JOBS = "/apis/muster.dev/v1alpha1/namespaces/{namespace}/distributedtrainingjobs"


@dataclass
class ReviewServer:
    """`users` are the names by token; `rights` are (name, namespace, verb). It records the questions in `asked`."""

    users: dict[str, str] = field(default_factory=dict)
    rights: set[tuple[str, str, str]] = field(default_factory=set)
    jobs: list[dict[str, Any]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    is_broken: bool = False

    async def review_token(self, request: web.Request) -> web.Response:
        """Answer a TokenReview."""
        spec = (await request.json())["spec"]
        self.asked.append(f"token {spec['token']}")
        if self.is_broken:
            return make_failure(503, "ServiceUnavailable", "etcd is away")
        name = self.users.get(spec["token"], "")
        status = {"authenticated": bool(name), "user": {"username": name}, "audiences": spec.get("audiences", [])}
        return web.json_response({"status": status}, status=201)

    async def review_access(self, request: web.Request) -> web.Response:
        """Answer a SubjectAccessReview."""
        spec = (await request.json())["spec"]
        attributes = spec["resourceAttributes"]
        what = f"{attributes['resource']}/{attributes['subresource']}".rstrip("/")
        self.asked.append(f"{spec['user']} {attributes['verb']} {what} in {attributes['namespace']}")
        if self.is_broken:
            return make_failure(503, "ServiceUnavailable", "etcd is away")
        verb = attributes["verb"] if what == "distributedtrainingjobs" else what
        return web.json_response(
            {"status": {"allowed": (spec["user"], attributes["namespace"], verb) in self.rights}}, status=201
        )

    async def list_jobs(self, request: web.Request) -> web.StreamResponse:
        """Answer a list, or a watch, which stays silent."""
        if request.query.get("watch"):
            response = web.StreamResponse()
            await response.prepare(request)
            await asyncio.Event().wait()
        items = [job for job in self.jobs if job["metadata"]["namespace"] == request.match_info["namespace"]]
        return web.json_response({"metadata": {"resourceVersion": "1"}, "items": items})

    async def get_job(self, request: web.Request) -> web.Response:
        """Answer a request for one job."""
        if self.is_broken:
            return make_failure(503, "ServiceUnavailable", "etcd is away")
        for job in self.jobs:
            if (job["metadata"]["namespace"], job["metadata"]["name"]) == tuple(request.match_info.values()):
                return web.json_response(job)
        return make_failure(404, "NotFound", json.dumps(dict(request.match_info)))

    @asynccontextmanager
    async def serve(self, folder: Path) -> AsyncIterator[Client]:
        """Yield a client while the server runs."""
        app = web.Application()
        app.router.add_post("/apis/authentication.k8s.io/v1/tokenreviews", self.review_token)
        app.router.add_post("/apis/authorization.k8s.io/v1/subjectaccessreviews", self.review_access)
        app.router.add_get(JOBS, self.list_jobs)
        app.router.add_get(f"{JOBS}/{{name}}", self.get_job)
        async with api_client(app, folder) as client:
            yield client
