"""The operator as a process: until somebody asks it to end, or it can't go on."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Callable

from muster.kube.client import Client
from muster.runtime.cluster.replica import OperatorOptions, Replica

STOPPED_AT_ONCE = 1
"""The exit code after a second signal."""

_log = logging.getLogger(__name__)


async def serve(options: OperatorOptions) -> None:
    """Run one replica until SIGTERM or SIGINT; it finishes what it is doing, and gives the Lease back.

    Raises `NoCluster`, `CannotStart`, `OSError` when a port is taken, and an `ExceptionGroup` when a part of it ended.
    """
    client = await Client.connect()
    try:
        work = asyncio.create_task(Replica(client, options).run(), name="replica")
        asked = _on_signals(work.cancel)
        try:
            await work
        except asyncio.CancelledError:
            if not asked():
                raise
            _log.info("stopped")
    finally:
        await client.close()


def _on_signals(stop: Callable[[], object]) -> Callable[[], bool]:
    """Call `stop` at the first signal, end at the second; whether there was one."""
    heard: list[int] = []

    def hear(number: int) -> None:
        heard.append(number)
        if len(heard) > 1:
            os._exit(STOPPED_AT_ONCE)
        _log.info("%s: stopping", signal.Signals(number).name)
        stop()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, hear, number)
    return lambda: bool(heard)
