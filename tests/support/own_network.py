"""A network namespace for a test, so that its ports and socket names can't collide with others."""

import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_NEW_NETWORK = 0x40000000  # CLONE_NEWNET, sched.h


def may_have_own_network() -> bool:
    """Whether this process may create a network namespace."""
    return os.geteuid() == 0 and shutil.which("ip") is not None


@contextmanager
def own_network() -> Iterator[None]:
    """Move this thread, and the processes that it starts, into a new network with only the loopback interface."""
    libc = ctypes.CDLL(None, use_errno=True)
    with Path("/proc/thread-self/ns/net").open("rb") as before:
        _check(libc.unshare(_NEW_NETWORK))
        try:
            subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
            yield
        finally:
            _check(libc.setns(before.fileno(), _NEW_NETWORK))


def _check(result: int) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
