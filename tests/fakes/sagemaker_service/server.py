"""The service on a real socket: in a thread of the test, or as `python -m fakes.sagemaker_service.server`."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from queue import Queue

from aiohttp import web

from fakes.sagemaker_service.service import NoReply, Service


@contextmanager
def serving(service: Service) -> Iterator[str]:
    """Yield the URL at which `service` answers inside the block."""
    site: Queue[tuple[str, Callable[[], object]]] = Queue()

    async def run() -> None:
        stop = asyncio.Event()
        runner = web.AppRunner(_make_application(service, stop))
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        loop = asyncio.get_running_loop()
        site.put((f"http://{host}:{port}", lambda: loop.call_soon_threadsafe(stop.set)))
        await stop.wait()
        await runner.cleanup()

    thread = threading.Thread(target=lambda: asyncio.run(run()), name="sagemaker service")
    thread.start()
    url, end = site.get()
    try:
        yield url
    finally:
        end()
        thread.join()


def _make_application(service: Service, ending: asyncio.Event) -> web.Application:
    async def answer(request: web.Request) -> web.Response:
        reply = service.handle(request.headers, await request.read())
        if not isinstance(reply, NoReply):
            return web.Response(status=reply.status, body=reply.body.encode(), headers=dict(reply.headers))
        if reply.is_silent:
            await ending.wait()
        if request.transport is not None:
            request.transport.abort()
        return web.Response()

    application = web.Application(client_max_size=16 * 1024 * 1024)
    application.router.add_post("/", answer)
    return application


def main() -> None:
    """Serve with the real clock until killed; print the URL."""
    with serving(Service(lambda: datetime.now(UTC))) as url:
        print(url, flush=True)  # noqa: T201
        threading.Event().wait()


if __name__ == "__main__":
    main()
