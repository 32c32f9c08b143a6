"""The operator as a process: it runs until it gets a signal or can't continue."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable

from muster.clients.kubernetes.client import Client
from muster.clients.kubernetes.lease import new_identity
from muster.controller.health import listen
from muster.controller.leader.election import LeaderElection
from muster.controller.leader.elector import ElectorOptions
from muster.controller.leader.process import elector_process
from muster.controller.replica import OperatorOptions, Replica

SWITCH_SECONDS = 0.0005
"""After that a thread that computes lets another one go on: Python's own 5 ms would be what each answer of the event
loop takes while kopf, or the turn of a large job, has something to compute."""

STOPPED_AT_ONCE = 1
"""The exit code after a second signal."""

_log = logging.getLogger(__name__)


def serve(options: OperatorOptions) -> None:
    """Run one replica until SIGTERM or SIGINT; it finishes what it is doing, and gives the Lease back.

    Begins a second process, so it is called before there are threads. Raises `NoCluster`, `CannotStart`, `OSError`
    when a port is taken, and an `ExceptionGroup` when a part of it ended.
    """
    identity = new_identity()
    elector = ElectorOptions(options.lease_namespace, options.lease_name, identity)
    with elector_process(listen(options.host, options.health_port), elector) as election:
        asyncio.run(_serve(options, identity, election))


async def _serve(options: OperatorOptions, identity: str, election: LeaderElection) -> None:
    sys.setswitchinterval(SWITCH_SECONDS)
    client = await Client.connect()
    try:
        work = asyncio.create_task(Replica(client, options, identity, election).run(), name="replica")
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
