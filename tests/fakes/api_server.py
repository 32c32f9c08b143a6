"""A fake API server for one job's resource: versions, preconditions, merge patches, and errors on demand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

from fakes.api_client import api_client
from muster.clients.kubernetes.client import Client

Mishap = Callable[["ApiServer"], web.Response | None]
"""Called instead of the normal handling; its answer is sent, and None breaks the connection."""


@dataclass
class ApiServer:
    """`resource` is the stored object (None: no object), `patches` and `created` are the received requests.

    Fields of the status that are `unknown` to the CRD are not stored.
    """

    resource: dict[str, Any] | None
    patches: list[dict[str, Any]] = field(default_factory=list)
    created: list[dict[str, Any]] = field(default_factory=list)
    mishaps: list[Mishap] = field(default_factory=list)
    unknown: tuple[str, ...] = ()
    came: asyncio.Condition = field(default_factory=asyncio.Condition)

    @property
    def status(self) -> dict[str, Any]:
        assert self.resource is not None
        status: dict[str, Any] = self.resource.get("status", {})
        return status

    def change(self, **metadata: object) -> None:
        """Change the resource as another client."""
        assert self.resource is not None
        current = self.resource["metadata"]
        self.resource["metadata"] = {**current, "resourceVersion": str(int(current["resourceVersion"]) + 1), **metadata}

    def merge_status(self, patch: dict[str, Any]) -> web.Response:
        """Apply a merge patch to the status, as the API server does."""
        if self.resource is None:
            return make_failure(404, "NotFound", "there is none")
        current = self.resource["metadata"]
        asked = patch.get("metadata", {})
        if asked.get("uid") != current["uid"] or asked.get("resourceVersion") != current["resourceVersion"]:
            return make_failure(409, "Conflict", "the object has been modified")
        status = merge_patch(self.resource.get("status", {}), patch["status"])
        self.resource["status"] = {key: value for key, value in status.items() if key not in self.unknown}
        self.change()
        return web.json_response(self.resource)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer one request."""
        body = await request.json() if request.can_read_body else {}
        if request.method == "PATCH":
            self.patches.append(body)
        if self.mishaps:
            answer = self.mishaps.pop(0)(self)
            if answer is None:
                assert request.transport is not None
                request.transport.abort()
                return web.Response()
            return answer
        if request.method == "PATCH":
            return self.merge_status(body)
        if request.method == "POST":
            return await self._create(body)
        if self.resource is None:
            return make_failure(404, "NotFound", "there is none")
        return web.json_response(self.resource)

    async def wait_until_created(self, number: int) -> None:
        """Wait until this many objects were created."""
        async with asyncio.timeout(60.0), self.came:
            await self.came.wait_for(lambda: len(self.created) >= number)

    async def _create(self, body: dict[str, Any]) -> web.Response:
        if any(one["metadata"]["name"] == body["metadata"]["name"] for one in self.created):
            return make_failure(409, "AlreadyExists", "it is there")
        async with self.came:
            self.created.append(body)
            self.came.notify_all()
        return web.json_response(body)


def lose_response(server: ApiServer) -> None:
    """Apply the last patch, and lose its response."""
    server.merge_status(server.patches[-1])


def make_failure(code: int, reason: str, message: str, **headers: str) -> web.Response:
    """Return a metav1.Status with a failure."""
    body = {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message}
    return web.json_response(body, status=code, headers=headers)


@asynccontextmanager
async def served(server: ApiServer, folder: Path) -> AsyncIterator[Client]:
    """Yield a client of the server while the server runs."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.handle)
    async with api_client(app, folder) as client:
        yield client


def merge_patch(target: Any, patch: Any) -> Any:
    """Apply a JSON merge patch to an object, by RFC 7396, section 2."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), value)
    return result
