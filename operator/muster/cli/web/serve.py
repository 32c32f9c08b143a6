"""Serve the board's page on this machine until Ctrl-C."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from pathlib import Path

from aiohttp import web

from muster.cli.errors import BadInput
from muster.cli.web.access import Hosts, TokenAccess, make_token
from muster.cli.web.local_runs import LocalRuns
from muster.cli.web.server import SHUTDOWN_SECONDS, BoardServer
from muster.cli.web.source import JobSource

ADDRESS = "127.0.0.1"


def serve_runs(folder: Path, port: int) -> int:
    """Serve the runs in `folder`; return the exit code. Raises `BadInput` if the port is in use."""
    return asyncio.run(serve_jobs(LocalRuns(folder.expanduser().absolute()), port))


async def serve_jobs(source: JobSource, port: int) -> int:
    """Serve the jobs of `source`; return the exit code. Raises `BadInput` if the port is in use."""
    token, stop = make_token(), catch_stop()
    with _bind(port) as listener:
        bound_port: int = listener.getsockname()[1]
        server = BoardServer(TokenAccess(source, token), Hosts(bound_port))
        runner = web.AppRunner(server.build_app(), access_log=None, shutdown_timeout=SHUTDOWN_SECONDS)
        await runner.setup()
        try:
            await web.SockSite(runner, listener).start()
            sys.stdout.write(f"http://{ADDRESS}:{bound_port}/#token={token}\n")
            sys.stdout.flush()
            await stop.wait()
        finally:
            await runner.cleanup()
    return 0


def _bind(port: int) -> socket.socket:
    try:
        return socket.create_server((ADDRESS, port))
    except OSError as error:
        raise BadInput(f"--port {port}: {error.strerror}") from None


def catch_stop() -> asyncio.Event:
    """Return an event that SIGINT and SIGTERM set from now on."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    return stop
