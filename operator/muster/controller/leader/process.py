"""Run the elector in a process of its own, forked before the main process has an event loop or threads."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import multiprocessing
import os
import signal
import socket
from collections.abc import Iterator
from multiprocessing.connection import Connection

from muster.controller.leader.election import LeaderElection
from muster.controller.leader.elector import ElectorOptions, hold_lease

ELECTOR_EXIT_SECONDS = 4.0
"""The maximum time to release the Lease."""

_log = logging.getLogger(__name__)


@contextlib.contextmanager
def run_elector_process(listening_socket: socket.socket, options: ElectorOptions) -> Iterator[LeaderElection]:
    """Run the elector until the `with` block ends. It answers the kubelet's probes on `listening_socket`."""
    context = multiprocessing.get_context("fork")
    main_connection, elector_connection = context.Pipe()
    # Both processes share the memory of existing objects. The garbage collector would write to it, and so copy it.
    gc.collect()
    gc.freeze()
    process = context.Process(
        target=_run_elector,
        args=(elector_connection, main_connection, listening_socket, options, os.getpid()),
        name="elector",
        daemon=True,
    )
    process.start()
    elector_connection.close()
    listening_socket.close()
    try:
        with main_connection:
            yield LeaderElection(main_connection)
    finally:
        process.join(ELECTOR_EXIT_SECONDS)
        if process.is_alive():
            _log.warning("the elector took longer than %.0f s to end", ELECTOR_EXIT_SECONDS)
            process.kill()
            process.join()


def _run_elector(
    connection: Connection,
    parent_connection: Connection,
    listening_socket: socket.socket,
    options: ElectorOptions,
    parent_pid: int,
) -> None:
    # The main process handles these signals, and then ends this process.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    parent_connection.close()
    try:
        asyncio.run(hold_lease(connection, listening_socket, options, parent_pid))
    except Exception:  # noqa: BLE001 - the closed connection informs the main process
        _log.critical("the elector failed", exc_info=True)
        raise SystemExit(1) from None
