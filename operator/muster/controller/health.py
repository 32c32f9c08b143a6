"""Serve the kubelet's probes: liveness (/healthz) and readiness (/readyz).

The elector's process serves them (`leader/elector.py`). It has no access to jobs: the main process sends it the failure
messages. Put an endpoint that needs jobs or ranks into the main process (`replica.py`).
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from http import HTTPStatus

from aiohttp import web

from muster.controller import short_connections
from muster.controller.short_connections import ConnectionLimits, Handler, serve_requests

MAX_CONNECTIONS = 64
"""The maximum number of connections. Any client may connect."""

CONNECTION_SECONDS = 2.0
"""The maximum age of a connection. The kubelet opens a new one for each probe."""

GetFailureMessages = Callable[[], Iterable[str]]
"""A function that returns a message for each problem."""


@dataclass(frozen=True)
class HealthCheck:
    """A health check. If `passes` returns False, the probe reports `message`."""

    message: str
    passes: Callable[[], bool]


def get_failure_messages(checks: Iterable[HealthCheck]) -> tuple[str, ...]:
    """Return the messages of the failed checks."""
    return tuple(check.message for check in checks if not check.passes())


def open_listening_socket(host: str, port: int) -> socket.socket:
    """Open the socket for the kubelet's probes. Raises `OSError`."""
    return short_connections.open_listening_socket(host, port, MAX_CONNECTIONS)


def serve_health(
    listening_socket: socket.socket,
    get_liveness_failures: GetFailureMessages,
    get_readiness_failures: GetFailureMessages,
) -> AbstractAsyncContextManager[None]:
    """Serve /healthz and /readyz until the `with` block ends."""
    probes = {"/healthz": get_liveness_failures, "/readyz": get_readiness_failures}
    limits = ConnectionLimits(MAX_CONNECTIONS, CONNECTION_SECONDS)
    return serve_requests(listening_socket, _make_handler(probes), limits)


def _make_handler(probes: dict[str, GetFailureMessages]) -> Handler:
    async def answer(request: web.BaseRequest) -> web.Response:
        probe = probes.get(request.path)
        if probe is None:
            return web.Response(status=HTTPStatus.NOT_FOUND)
        messages = tuple(probe())
        if not messages:
            return web.Response(text="ok\n")
        text = "".join(f"{line}\n" for line in messages)
        return web.Response(text=text, status=HTTPStatus.SERVICE_UNAVAILABLE)

    return answer
