"""The server of the board's page: its files, the list of jobs, and a stream of frames for each job. Read-only."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.resources import files

from aiohttp import web

from muster.cli.board.frame import Frame
from muster.cli.web.access import Access, Hosts, Reader, check_read_only
from muster.cli.web.events import COMMENT, EventEncoder
from muster.cli.web.source import JobNotFound, JobSource, NotShown

INTERVAL_SECONDS = 0.5
"""A stream has at most one event in this time."""

SEND_SECONDS = 30.0
"""A page that does not take an event in this time loses its stream."""

SHUTDOWN_SECONDS = 0.1
"""How long a server that stops waits for streams, which never end by themselves. aiohttp takes 0 for no limit."""

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
    "sign_in.js": "text/javascript",
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


_READER = web.RequestKey("reader", Reader)


@dataclass(frozen=True)
class StreamLimits:
    """How many streams may be open, of all readers and of one."""

    total: int = 32
    per_reader: int = 32


@dataclass
class BoardServer:
    """Answers requests under the names in `hosts` for the jobs to which `access` admits their senders."""

    access: Access
    hosts: Hosts
    limits: StreamLimits = field(default_factory=StreamLimits)
    _streams: Counter[str] = field(default_factory=Counter, init=False)
    _encoder: EventEncoder = field(default_factory=EventEncoder, init=False)

    def build_app(self) -> web.Application:
        """Return the application."""
        app = web.Application(middlewares=[self._check])
        app.on_response_prepare.append(_add_headers)
        app.router.add_get("/api/jobs", _list_jobs)
        app.router.add_get("/api/jobs/{key}/events", self._stream_events, allow_head=False)
        app.router.add_get(r"/api/jobs/{key}/ranks/{rank:\d{1,7}}", _send_rank)
        app.router.add_get("/", _send_page_file)
        app.router.add_get("/{name}", _send_page_file)
        return app

    @web.middleware
    async def _check(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        self.hosts.check(request)
        check_read_only(request)
        try:
            if request.path.startswith("/api/"):
                request[_READER] = await self.access.authenticate(request)
            return await handler(request)
        except JobNotFound as error:
            raise web.HTTPNotFound(text=f"{error}\n") from None
        except NotShown as error:
            raise web.HTTPForbidden(text=f"{error}\n") from None

    async def _stream_events(self, request: web.Request) -> web.StreamResponse:
        """Send a whole frame, and then what changes, as server-sent events."""
        reader, key = request[_READER], request.match_info["key"]
        frame = await reader.jobs.read_frame(key)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        with self._count_stream(reader.name):
            try:
                await response.prepare(request)
                await _send(response, await self._encoder.encode(None, frame))
                await self._send_changes(response, reader.jobs, key, frame)
            except ConnectionError:
                pass  # the page was closed
            except TimeoutError:
                if request.transport is not None:
                    request.transport.close()
        return response

    @contextmanager
    def _count_stream(self, name: str) -> Iterator[None]:
        if self._streams.total() >= self.limits.total or self._streams[name] >= self.limits.per_reader:
            raise web.HTTPServiceUnavailable(text=f"{self._streams[name]} of your pages are open: close one\n")
        self._streams[name] += 1
        try:
            yield
        finally:
            self._streams[name] -= 1
            if not self._streams[name]:
                del self._streams[name]

    async def _send_changes(self, response: web.StreamResponse, jobs: JobSource, key: str, frame: Frame) -> None:
        loop = asyncio.get_running_loop()
        sent_at = loop.time()
        while True:
            await asyncio.sleep(INTERVAL_SECONDS)
            try:
                newest = await jobs.read_frame(key)
            except (JobNotFound, NotShown):
                return
            if newest != frame:
                await _send(response, await self._encoder.encode(frame, newest))
                frame, sent_at = newest, loop.time()
            elif loop.time() - sent_at >= KEEP_ALIVE_SECONDS:
                await _send(response, COMMENT)
                sent_at = loop.time()


async def _send(response: web.StreamResponse, event: bytes) -> None:
    async with asyncio.timeout(SEND_SECONDS):
        await response.write(event)


async def _list_jobs(request: web.Request) -> web.Response:
    jobs = await request[_READER].jobs.list_jobs()
    entries = [
        {"key": job.key, "name": job.name, "title": job.title or job.key, "phase": job.phase, "world": job.world}
        for job in jobs
    ]
    return web.json_response({"jobs": entries})


async def _send_rank(request: web.Request) -> web.Response:
    output = await request[_READER].jobs.read_rank(request.match_info["key"], int(request.match_info["rank"]))
    return web.json_response({"lastLines": output.last_lines, "stackLines": output.stack_lines})


async def _send_page_file(request: web.Request) -> web.Response:
    name = request.match_info.get("name", "index.html")
    if name not in _PAGE_FILES:
        raise web.HTTPNotFound
    content = files("muster.cli.web").joinpath("static", name).read_bytes()
    return web.Response(body=content, content_type=_PAGE_FILES[name], charset="utf-8")


async def _add_headers(request: web.Request, response: web.StreamResponse) -> None:  # noqa: ARG001 - a signal's handler
    response.headers.update(HEADERS)
    response.headers.popall("Server", None)
