"""Serve /metrics, in every replica.

Clients don't authenticate: the chart's NetworkPolicy admits only the scrapers that its values name. This module
computes the metrics at most once in `REUSE_SECONDS`, so that a client that scrapes all the time costs little.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus

from aiohttp import web

from muster.controller import short_connections
from muster.controller.metrics.event_loop_lag import measure_lag
from muster.controller.metrics.exposition import CONTENT_TYPE, write_text
from muster.controller.metrics.recorder import MetricsRecorder
from muster.controller.metrics.snapshot import MetricSources, Sample, take_snapshot
from muster.controller.short_connections import ConnectionLimits, serve_requests

PATH = "/metrics"

LIMITS = ConnectionLimits(max_connections=16, max_seconds=10.0)
"""Prometheus waits 10 s by default. Each connection holds at most one scrape."""

REUSE_SECONDS = 1.0
"""Scrapes within this time get the same text. Prometheus scrapes every 15 or 60 s."""


class MetricsEndpoint:
    """Answers scrapes. `monotonic` returns monotonic seconds."""

    def __init__(
        self, recorder: MetricsRecorder, sources: MetricSources, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._recorder = recorder
        self._sources = sources
        self._monotonic = monotonic
        self._lock = asyncio.Lock()
        self._text = b""
        self._computed_at = float("-inf")

    async def answer(self, request: web.BaseRequest) -> web.Response:
        """Answer a request."""
        if request.path != PATH:
            return web.Response(status=HTTPStatus.NOT_FOUND)
        if request.method != "GET":
            return web.Response(status=HTTPStatus.METHOD_NOT_ALLOWED, headers={"Allow": "GET"})
        return web.Response(body=await self._scrape(), headers={"Content-Type": CONTENT_TYPE})

    async def _scrape(self) -> bytes:
        async with self._lock:
            if self._monotonic() - self._computed_at >= REUSE_SECONDS:
                samples: Sequence[Sample] = await take_snapshot(self._recorder, self._sources)
                # Use a thread, so that the event loop can run other tasks.
                self._text = await asyncio.to_thread(write_text, samples)
                self._computed_at = self._monotonic()
            return self._text


def open_listening_socket(host: str, port: int) -> socket.socket:
    """Open the socket for scrapers. Raises `OSError`."""
    return short_connections.open_listening_socket(host, port, LIMITS.max_connections)


@asynccontextmanager
async def serve_metrics(
    listening_socket: socket.socket, recorder: MetricsRecorder, sources: MetricSources
) -> AsyncIterator[None]:
    """Serve /metrics and measure the event loop's lag until the `with` block ends."""
    lag = asyncio.create_task(measure_lag(recorder.loop_lag), name="the event loop's lag")
    try:
        async with serve_requests(listening_socket, MetricsEndpoint(recorder, sources).answer, LIMITS):
            yield
    finally:
        lag.cancel()
