"""What a process that reads what strangers send gives up before it does."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from muster.storage.archive.landlock import read_only

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 1, 4, 38

_OPEN_FILES = 64
_NICENESS = 10

_READ = (
    *("/usr", "/lib", "/lib64", "/etc/ssl", "/etc/pki", "/etc/ca-certificates", "/etc/crypto-policies"),
    *("/etc/resolv.conf", "/etc/hosts", "/etc/host.conf", "/etc/nsswitch.conf", "/etc/gai.conf", "/etc/services"),
    *("/etc/ld.so.cache", "/etc/localtime", "/dev/null", "/dev/urandom"),
)
"""What Python, OpenSSL and the system's resolver read. The operator's configuration in /etc/muster is not among it, nor
are its tokens, nor /proc, where the environment of other processes is."""


@dataclass(frozen=True)
class Limits:
    """`memory_bytes` is what it may hold of its own, `file_bytes` the largest file that it may write.

    `seconds` is its time by the clock, `cpu_seconds` by the processor.
    """

    memory_bytes: int
    address_bytes: int
    cpu_seconds: int
    file_bytes: int
    seconds: float


def leave_with_parent(parent: int) -> None:
    """End when process `parent` does, however that ends. Raises `SystemExit` when it is gone."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    # no process of the same user may look into it
    _prctl(_PR_SET_DUMPABLE, 0)
    if os.getppid() != parent:
        raise SystemExit(1)


def confine(limits: Limits) -> bool:
    """Keep to `limits`, and give up the file system; whether the latter is possible here. Raises `OSError`."""
    os.nice(_NICENESS)
    # after the soft limit the kernel says by a signal which limit it was
    for kind, most, more in (
        (resource.RLIMIT_DATA, limits.memory_bytes, 0),
        (resource.RLIMIT_AS, limits.address_bytes, 0),
        (resource.RLIMIT_CPU, limits.cpu_seconds, 1),
        (resource.RLIMIT_FSIZE, limits.file_bytes, 0),
        (resource.RLIMIT_NOFILE, _OPEN_FILES, 0),
        (resource.RLIMIT_CORE, 0, 0),
    ):
        _, hard = resource.getrlimit(kind)
        above = most + more if hard == resource.RLIM_INFINITY else min(most + more, hard)
        resource.setrlimit(kind, (min(most, above), above))
    return read_only(_places())


def _places() -> list[Path]:
    own = (os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"), sys.prefix, sys.base_prefix, *sys.path)
    return [Path(place) for place in (*_READ, *own) if place]


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
