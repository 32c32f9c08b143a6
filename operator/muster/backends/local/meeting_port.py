"""The port where the ranks of a SageMaker job meet: the toolkit has one for all jobs, and this machine has it once."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

PORT = 7777
"""sagemaker-training 5.1.4, torch_distributed.py."""

_OURS = f"\0muster-port-{PORT}"
"""A name that one process of this machine's network has at a time, and that goes with it."""


class PortTaken(Exception):
    """Somebody else's ranks, or whatever it is, meet there."""


@contextmanager
def meeting_port(port: int = PORT, name: str = _OURS) -> Iterator[None]:
    """Have the port for this run alone. Raises `PortTaken`: ranks would wait for those of another run, or join them."""
    with ExitStack() as held:
        ours = held.enter_context(socket.socket(socket.AF_UNIX))
        try:
            ours.bind(name)
            with socket.socket(socket.AF_INET) as trial:
                # as torchrun binds it: what is left of an earlier connection doesn't prevent it
                trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                trial.bind(("", port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            raise PortTaken(
                f"port {port} of this machine is in use, and there the ranks of each SageMaker job meet: wait until the"
                f" other run is over, or see who it is (ss -ltnp 'sport = :{port}')"
            ) from None
        yield
