"""Serve the board of a cluster: in a pod, for readers with tokens of the cluster."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from muster.cli.errors import BadInput, format_os_error
from muster.cli.jobs.cluster import run_with_client
from muster.cli.operator.log import LogFormat, start_log
from muster.cli.web.access import Hosts
from muster.cli.web.job_frames import JobFrames
from muster.cli.web.serve import ADDRESS, catch_stop
from muster.cli.web.served.authorized_jobs import Board
from muster.cli.web.served.connections import BoardConnection, BoardConnections
from muster.cli.web.served.namespace_watches import NamespaceWatches
from muster.cli.web.served.review_access import ReviewAccess
from muster.cli.web.served.reviewer import Reviewer
from muster.cli.web.served.tls import TlsFiles, follow_certificate, make_context
from muster.cli.web.server import SHUTDOWN_SECONDS, BoardServer, StreamLimits
from muster.clients.kubernetes.client import Client
from muster.controller.health import open_listening_socket, serve_health

STREAMS = StreamLimits(total=256, per_reader=16)

HANDSHAKE_SECONDS = 5.0
BACKLOG = 128


@dataclass(frozen=True)
class TlsPort:
    """A port for TLS on all addresses, whose clients use one of the names `hosts`."""

    port: int
    certificate: Path
    key: Path
    hosts: tuple[str, ...]


@dataclass(frozen=True)
class BoardOptions:
    """`port` is on 127.0.0.1 only. Empty `namespaces` means all. `health_port` None: no probes are answered."""

    namespaces: tuple[str, ...]
    port: int
    health_port: int | None
    tls: TlsPort | None
    shows_logs: bool


def serve_board(options: BoardOptions, log_format: LogFormat) -> int:
    """Serve until a signal arrives; return the exit code. Raises `BadInput`."""
    start_log(log_format)

    async def serve(client: Client, _: str) -> int:
        try:
            return await _serve(client, options)
        except (OSError, ssl.SSLError) as error:
            raise BadInput(f"the board can't be served: {format_os_error(error)}") from None

    return run_with_client(None, serve)


async def _serve(client: Client, options: BoardOptions) -> int:
    stop, watches = catch_stop(), NamespaceWatches(client, options.namespaces)
    board = Board(Reviewer(client), watches, JobFrames(client), options.shows_logs)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(watches.close)
        await stack.enter_async_context(_listen(board, Hosts(None), ADDRESS, options.port, None))
        if options.tls is not None:
            files = TlsFiles(options.tls.certificate, options.tls.key)
            context = make_context(files)
            stack.callback(asyncio.create_task(follow_certificate(files, context)).cancel)
            hosts = Hosts(None, options.tls.hosts)
            await stack.enter_async_context(_listen(board, hosts, "", options.tls.port, context))
        if options.health_port is not None:
            health = open_listening_socket("0.0.0.0", options.health_port)  # noqa: S104 - for the kubelet
            await stack.enter_async_context(serve_health(health, lambda: (), lambda: ()))
        await stop.wait()
    return 0


@asynccontextmanager
async def _listen(
    board: Board, hosts: Hosts, address: str, port: int, context: ssl.SSLContext | None
) -> AsyncIterator[None]:
    """Serve the board on a port in the `with` block. `address` "" means all addresses."""
    app = BoardServer(ReviewAccess(board), hosts, STREAMS).build_app()
    runner = web.AppRunner(app, shutdown_timeout=SHUTDOWN_SECONDS)
    await runner.setup()
    connections = BoardConnections()
    listener = await asyncio.get_running_loop().create_server(
        lambda: BoardConnection(_get_server(runner), connections),
        address or None,
        port,
        ssl=context,
        ssl_handshake_timeout=None if context is None else HANDSHAKE_SECONDS,
        backlog=BACKLOG,
    )
    try:
        yield
    finally:
        listener.close()
        await runner.cleanup()


def _get_server(runner: web.AppRunner) -> web.Server:
    if runner.server is None:
        raise RuntimeError("the runner was not set up")
    return runner.server
