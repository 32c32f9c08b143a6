"""Reserve the rendezvous port of SageMaker jobs: SageMaker's toolkit uses one port for all jobs."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

RENDEZVOUS_PORT = 7777
"""The port in torch_distributed.py of sagemaker-training 5.1.4."""

_LOCK_NAME = f"\0muster-port-{RENDEZVOUS_PORT}"
"""The name of an abstract socket: only one process of a machine can bind it. The kernel frees it at its end."""


class PortTaken(Exception):
    """Another process uses the port."""


@contextmanager
def reserve_rendezvous_port(port: int = RENDEZVOUS_PORT, name: str = _LOCK_NAME) -> Iterator[None]:
    """Reserve the port for this run. Raises `PortTaken`: otherwise the ranks would join those of another run."""
    with ExitStack() as sockets:
        lock = sockets.enter_context(socket.socket(socket.AF_UNIX))
        try:
            lock.bind(name)
            with socket.socket(socket.AF_INET) as probe:
                # bind it as torchrun does, so that a recently closed connection doesn't prevent it
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(("", port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            raise PortTaken(
                f"port {port} of this machine is in use, which the ranks of every SageMaker job need: wait until the"
                f" other run is over, or find the process (ss -ltnp 'sport = :{port}')"
            ) from None
        yield
