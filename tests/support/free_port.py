"""Ports on which a test lets a process listen."""

import contextlib
import functools
import itertools
import os
import random
import socket
from collections.abc import Iterator

PORTS = range(10_000, 30_000)
"""Ports below the system's range for connections, which could otherwise use one before the process listens."""

WORKERS = 16


@functools.cache
def _own_ports() -> Iterator[int]:
    """Iterate over the ports of this worker of pytest. Another worker could listen on a port that only was free."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", f"gw{WORKERS - 1}").removeprefix("gw")) % WORKERS
    own = PORTS[worker::WORKERS]
    return itertools.cycle(random.sample(own, len(own)))


def free_port() -> int:
    """Return a currently free port, which no later call returns for a long time."""
    while True:
        port = next(_own_ports())
        with socket.socket() as listening, contextlib.suppress(OSError):
            listening.bind(("", port))
            return port
