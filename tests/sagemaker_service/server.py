"""The service behind a real socket: for the test's own thread, or as `python -m sagemaker_service.server`."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from aiohttp import web

from sagemaker_service.service import NoReply, Service


@contextmanager
def serving(service: Service) -> Iterator[str]:
    """The URL at which `service` answers meanwhile."""
    loop = asyncio.new_event_loop()
    url: list[str] = []
    is_up = threading.Event()
    stop = asyncio.Event()

    async def run() -> None:
        runner = web.AppRunner(_application(service), shutdown_timeout=0)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        url.append(f"http://{host}:{port}")
        is_up.set()
        await stop.wait()
        await runner.cleanup()

    thread = threading.Thread(target=lambda: loop.run_until_complete(run()), name="sagemaker service")
    thread.start()
    is_up.wait()
    try:
        yield url[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


def _application(service: Service) -> web.Application:
    async def answer(request: web.Request) -> web.Response:
        reply = service.handle(request.headers, await request.read())
        if not isinstance(reply, NoReply):
            return web.Response(status=reply.status, body=reply.body.encode(), headers=dict(reply.headers))
        if reply.is_silent:
            await asyncio.Event().wait()
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    application = web.Application(client_max_size=16 * 1024 * 1024)
    application.router.add_post("/", answer)
    return application


def main() -> None:
    """Serve by the real clock, until killed; the URL is printed."""
    with serving(Service(lambda: datetime.now(UTC))) as url:
        print(url, flush=True)  # noqa: T201
        threading.Event().wait()


if __name__ == "__main__":
    main()
