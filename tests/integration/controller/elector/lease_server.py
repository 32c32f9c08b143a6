"""An API server with one Lease, which records renewals and other requests."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

NAME = "muster"


@dataclass
class LeaseServer:
    """`renewals` are the times (monotonic) at which a process wrote the Lease; `changes` are the other requests."""

    lease: dict[str, Any] | None = None
    renewals: list[float] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)

    @property
    def app(self) -> web.Application:
        """The web application."""
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._handle)
        return app

    @property
    def holder(self) -> str:
        """The Lease's holder."""
        return "" if self.lease is None else str(self.lease["spec"]["holderIdentity"])

    def take(self, holder: str) -> None:
        """Let another process take the Lease, for a second."""
        assert self.lease is not None
        spec = self.lease["spec"]
        changes = {"holderIdentity": holder, "leaseTransitions": _next(spec), "leaseDurationSeconds": 1}
        self._store({**self.lease, "spec": {**spec, **changes}})

    async def _handle(self, request: web.Request) -> web.Response:
        if "/leases" not in request.path:
            self.changes.append(f"{request.method} {request.path}")
            return web.json_response(await request.json())
        if request.method == "GET":
            return _failure(404, "NotFound") if self.lease is None else web.json_response(self.lease)
        body = await request.json()
        if self.lease is not None:
            current = self.lease["metadata"]["resourceVersion"]
            if body["metadata"].get("resourceVersion") != current:
                return _failure(409, "Conflict")
        self._store(body)
        self.renewals.append(time.monotonic())
        return web.json_response(self.lease)

    def _store(self, body: dict[str, Any]) -> None:
        version = 0 if self.lease is None else int(self.lease["metadata"]["resourceVersion"])
        self.lease = {**body, "metadata": {**body["metadata"], "resourceVersion": str(version + 1)}}


def _next(spec: dict[str, Any]) -> int:
    transitions: int = spec["leaseTransitions"]
    return transitions + 1


def _failure(code: int, reason: str) -> web.Response:
    return web.json_response({"kind": "Status", "status": "Failure", "code": code, "reason": reason}, status=code)
