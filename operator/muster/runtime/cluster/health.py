"""What the kubelet asks: whether the operator works, and whether agents may be sent to it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus

from aiohttp import web


@dataclass(frozen=True)
class Check:
    """`holds` is asked each time; `complaint` says what is wrong when it doesn't."""

    complaint: str
    holds: Callable[[], bool]


async def serve_health(host: str, port: int, alive: Sequence[Check], ready: Sequence[Check]) -> web.AppRunner:
    """Answer /healthz and /readyz until the runner is cleaned up. Raises `OSError` when it can't listen.

    That there is an answer at all says that the event loop turns.
    """
    app = web.Application()
    app.router.add_get("/healthz", _answering(alive))
    app.router.add_get("/readyz", _answering(ready))
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.0)
    await runner.setup()
    await web.TCPSite(runner, host, port).start()
    return runner


def _answering(checks: Sequence[Check]) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(_: web.Request) -> web.Response:
        complaints = [check.complaint for check in checks if not check.holds()]
        if not complaints:
            return web.Response(text="ok\n")
        return web.Response(text="".join(f"{line}\n" for line in complaints), status=HTTPStatus.SERVICE_UNAVAILABLE)

    return answer
