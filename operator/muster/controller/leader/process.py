"""The elector's process: forked before the main process has an event loop or threads."""

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
from muster.controller.leader.elector import ElectorOptions, elect

END_SECONDS = 4.0
"""The maximum time to release the Lease."""

_log = logging.getLogger(__name__)


@contextlib.contextmanager
def elector_process(listening: socket.socket, options: ElectorOptions) -> Iterator[LeaderElection]:
    """Run the elector until the `with` block ends. It answers the kubelet's probes on `listening`."""
    context = multiprocessing.get_context("fork")
    main_connection, elector_connection = context.Pipe()
    # Both processes share the memory of existing objects. The garbage collector would write to it, and so copy it.
    gc.collect()
    gc.freeze()
    process = context.Process(
        target=_run_elector,
        args=(elector_connection, main_connection, listening, options, os.getpid()),
        name="elector",
        daemon=True,
    )
    process.start()
    elector_connection.close()
    listening.close()
    try:
        with main_connection:
            yield LeaderElection(main_connection)
    finally:
        process.join(END_SECONDS)
        if process.is_alive():
            _log.warning("the elector took longer than %.0f s to end", END_SECONDS)
            process.kill()
            process.join()


def _run_elector(
    connection: Connection,
    parent_connection: Connection,
    listening: socket.socket,
    options: ElectorOptions,
    parent: int,
) -> None:
    # The main process handles these signals, and then ends this process.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    parent_connection.close()
    try:
        asyncio.run(elect(connection, listening, options, parent))
    except Exception:  # noqa: BLE001 - the closed connection informs the main process
        _log.critical("the elector failed", exc_info=True)
        raise SystemExit(1) from None
