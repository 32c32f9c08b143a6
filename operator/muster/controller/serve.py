"""Run the operator as a process, until it gets a signal or fails."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable

from muster.clients.kubernetes.client import Client
from muster.clients.kubernetes.lease import make_identity
from muster.controller.health import open_listening_socket
from muster.controller.leader.election import LeaderElection
from muster.controller.leader.elector import ElectorOptions
from muster.controller.leader.process import run_elector_process
from muster.controller.options import OperatorOptions
from muster.controller.replica import Replica

SWITCH_INTERVAL_SECONDS = 0.0005
"""A busy thread lets another thread run after this time. With Python's default of 5 ms, each iteration of the event
loop would take 5 ms while kopf's thread is busy."""

FORCED_EXIT_CODE = 1
"""The exit code after a second signal."""

_log = logging.getLogger(__name__)


def serve(options: OperatorOptions) -> None:
    """Run one replica until SIGTERM or SIGINT. At the end, finish running reconciles and release the Lease.

    Call it before the process has threads, because it forks. Raises `NoCluster`, `StartupError`, `OSError` if a port is
    in use, and an `ExceptionGroup` if a component fails.
    """
    identity = options.names.identity or make_identity()
    elector = ElectorOptions(options.names.namespace, options.names.lease, identity)
    with run_elector_process(open_listening_socket(options.host, options.health_port), elector) as election:
        asyncio.run(_serve(options, identity, election))


async def _serve(options: OperatorOptions, identity: str, election: LeaderElection) -> None:
    sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)
    client = await Client.connect()
    try:
        work = asyncio.create_task(Replica(client, options, identity, election).run(), name="replica")
        was_signalled = _handle_signals(work.cancel)
        try:
            await work
        except asyncio.CancelledError:
            if not was_signalled():
                raise
            _log.info("stopped")
    finally:
        await client.close()


def _handle_signals(stop: Callable[[], object]) -> Callable[[], bool]:
    """Call `stop` at the first signal, and exit at the second. The returned function tells whether a signal arrived."""
    received_signals: list[int] = []

    def handle(number: int) -> None:
        received_signals.append(number)
        if len(received_signals) > 1:
            os._exit(FORCED_EXIT_CODE)
        _log.info("%s: stopping", signal.Signals(number).name)
        stop()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, handle, number)
    return lambda: bool(received_signals)
