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
    """Run the elector until the block ends. It answers the kubelet's probes on `listening`."""
    context = multiprocessing.get_context("fork")
    own_end, elector_end = context.Pipe()
    # Both processes share all present objects. Keep the garbage collector from touching them, which would copy their
    # pages.
    gc.collect()
    gc.freeze()
    process = context.Process(
        target=_work, args=(elector_end, own_end, listening, options, os.getpid()), name="elector", daemon=True
    )
    process.start()
    elector_end.close()
    listening.close()
    try:
        with own_end:
            yield LeaderElection(own_end)
    finally:
        process.join(END_SECONDS)
        if process.is_alive():
            _log.warning("the elector took longer than %.0f s to end", END_SECONDS)
            process.kill()
            process.join()


def _work(
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
