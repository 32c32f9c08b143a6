"""The elector's process: begun before the main one has an event loop or a thread, and ended with it."""

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
"""How long it may take to give the Lease back."""

_log = logging.getLogger(__name__)


@contextlib.contextmanager
def elector_process(listening: socket.socket, options: ElectorOptions) -> Iterator[LeaderElection]:
    """An elector for as long as the block lasts, which answers the kubelet at `listening`."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    # What is there by now is shared by both for good: the collector needn't look at it again, which would copy it.
    gc.collect()
    gc.freeze()
    process = context.Process(
        target=_work, args=(theirs, ours, listening, options, os.getpid()), name="elector", daemon=True
    )
    process.start()
    theirs.close()
    listening.close()
    try:
        with ours:
            yield LeaderElection(ours)
    finally:
        process.join(END_SECONDS)
        if process.is_alive():
            _log.warning("the elector took longer than %.0f s to end", END_SECONDS)
            process.kill()
            process.join()


def _work(
    connection: Connection, other_end: Connection, listening: socket.socket, options: ElectorOptions, parent: int
) -> None:
    # They are the main process' to act on, which then lets this one end.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    other_end.close()
    try:
        asyncio.run(elect(connection, listening, options, parent))
    except Exception:  # noqa: BLE001 - the main process hears of it by the connection's end
        _log.critical("the elector can't go on", exc_info=True)
        raise SystemExit(1) from None
