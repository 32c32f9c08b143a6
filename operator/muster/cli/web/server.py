"""The server of the board's page: its files, the list of jobs, and a stream of frames for each job. Read-only."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from importlib.resources import files

from aiohttp import web

from muster.api.document import JSON
from muster.cli.board.frame import Frame
from muster.cli.board.frame_json import encode_changes, encode_frame
from muster.cli.web.access import Access, check_host
from muster.cli.web.source import JobNotFound, JobSource

INTERVAL_SECONDS = 0.5
"""A stream has at most one event in this time."""

MAX_STREAMS = 32

KEEP_ALIVE_SECONDS = 15.0
"""A comment is sent after this time without an event, so that a closed connection is noticed."""

_PAGE_FILES = {
    "index.html": "text/html",
    "board.css": "text/css",
    "main.js": "text/javascript",
    "requests.js": "text/javascript",
    "frame.js": "text/javascript",
    "states.js": "text/javascript",
    "colours.js": "text/javascript",
    "layout.js": "text/javascript",
    "cells.js": "text/javascript",
    "history.js": "text/javascript",
    "output.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
        "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class BoardServer:
    """Answers requests for the jobs of `source`, if `access` permits them. `port` is the server's own."""

    source: JobSource
    access: Access
    port: int
    _streams: int = field(default=0, init=False)

    def build_app(self) -> web.Application:
        """Return the application."""
        app = web.Application(middlewares=[self._check])
        app.on_response_prepare.append(_add_headers)
        app.router.add_get("/api/jobs", self._list_jobs)
        app.router.add_get("/api/jobs/{key}/events", self._stream_events)
        app.router.add_get(r"/api/jobs/{key}/ranks/{rank:\d{1,7}}", self._send_rank)
        app.router.add_get("/", _send_page_file)
        app.router.add_get("/{name}", _send_page_file)
        return app

    @web.middleware
    async def _check(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        check_host(request, self.port)
        if request.path.startswith("/api/"):
            self.access.check(request)
        try:
            return await handler(request)
        except JobNotFound as error:
            raise web.HTTPNotFound(text=f"{error}\n") from None

    async def _list_jobs(self, request: web.Request) -> web.Response:  # noqa: ARG002 - a handler's parameter
        jobs = await self.source.list_jobs()
        entries = [{"key": job.key, "name": job.name, "phase": job.phase, "world": job.world} for job in jobs]
        return web.json_response({"jobs": entries})

    async def _send_rank(self, request: web.Request) -> web.Response:
        output = await self.source.read_rank(request.match_info["key"], int(request.match_info["rank"]))
        return web.json_response({"lastLines": output.last_lines, "stackLines": output.stack_lines})

    async def _stream_events(self, request: web.Request) -> web.StreamResponse:
        """Send a whole frame, and then what changes, as server-sent events."""
        if self._streams >= MAX_STREAMS:
            raise web.HTTPServiceUnavailable(text=f"{MAX_STREAMS} pages are open: close one\n")
        key = request.match_info["key"]
        frame = await self.source.read_frame(key)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        self._streams += 1
        try:
            await response.prepare(request)
            await _send(response, encode_frame(frame))
            await self._send_changes(response, key, frame)
        except ConnectionError:
            pass  # the page was closed
        finally:
            self._streams -= 1
        return response

    async def _send_changes(self, response: web.StreamResponse, key: str, frame: Frame) -> None:
        loop = asyncio.get_running_loop()
        sent_at = loop.time()
        while True:
            await asyncio.sleep(INTERVAL_SECONDS)
            try:
                newest = await self.source.read_frame(key)
            except JobNotFound:
                return
            if newest != frame:
                await _send(response, encode_changes(frame, newest))
                frame, sent_at = newest, loop.time()
            elif loop.time() - sent_at >= KEEP_ALIVE_SECONDS:
                await response.write(b": nothing has changed\n\n")
                sent_at = loop.time()


async def _send(response: web.StreamResponse, event: JSON) -> None:
    # json.dumps writes no line breaks, so the event is one line
    await response.write(f"data: {json.dumps(event, separators=(',', ':'))}\n\n".encode())


async def _send_page_file(request: web.Request) -> web.Response:
    name = request.match_info.get("name", "index.html")
    if name not in _PAGE_FILES:
        raise web.HTTPNotFound
    content = files("muster.cli.web").joinpath("static", name).read_bytes()
    return web.Response(body=content, content_type=_PAGE_FILES[name], charset="utf-8")


async def _add_headers(request: web.Request, response: web.StreamResponse) -> None:  # noqa: ARG001 - a signal's handler
    response.headers.update(HEADERS)
    response.headers.popall("Server", None)
