"""Waits for the store of node 0 before a forked torchrun connects to it.

torch's client waits for 0.5 to 1 s after a refused connection. A forked torchrun connects so early that the store of
node 0 is often not open yet.
"""

from __future__ import annotations

import socket
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Optional, Sequence, Tuple

TORCHRUN = "torch.distributed.run"

WAIT_SECONDS = 3.0
"""The longest wait. Afterwards torchrun connects by itself, and reports what is wrong."""

RETRY_SECONDS = 0.01

_FIRST_NODE = "0"
_END_OF_OPTIONS = "--no_python"


def wait_for_store(arguments: Sequence[str], limit: float = WAIT_SECONDS) -> None:
    """Wait until node 0 accepts connections at the rendezvous in torchrun's `arguments`, at most `limit` seconds."""
    address = find_store(arguments)
    deadline = time.monotonic() + limit
    while address is not None and not _accepts_connections(address, max(0.1, deadline - time.monotonic())):
        if time.monotonic() >= deadline:
            return
        time.sleep(RETRY_SECONDS)


def find_store(arguments: Sequence[str]) -> Optional[Tuple[str, int]]:
    """Return the address of the store that this torchrun connects to.

    Return None if it opens the store itself, or if a user has chosen another rendezvous.
    """
    if _END_OF_OPTIONS not in arguments:
        return None
    own_arguments = list(arguments[: list(arguments).index(_END_OF_OPTIONS)])
    options: Dict[str, str] = dict(zip(own_arguments, own_arguments[1:]))
    names = {argument.partition("=")[0].replace("-", "_") for argument in own_arguments}
    # A user may have chosen another rendezvous.
    if names & {"__rdzv_backend", "__rdzv_endpoint", "__rdzv_conf", "__standalone"}:
        return None
    port = options.get("--master_port", "")
    if options.get("--node_rank", _FIRST_NODE) == _FIRST_NODE or "--master_addr" not in options or not port.isdigit():
        return None
    return options["--master_addr"], int(port)


def _accepts_connections(address: Tuple[str, int], timeout: float) -> bool:
    try:
        socket.create_connection(address, timeout).close()
    except OSError:
        return False
    return True
