"""Restrict a process before it parses untrusted data: limits, and access to files."""

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
"""What Python, OpenSSL and the resolver read.

The operator's configuration in /etc/muster, its tokens, and /proc with the environment of other processes are missing.
"""


@dataclass(frozen=True)
class Limits:
    """`memory_bytes` limits the process's private memory, `file_bytes` the largest file that it may write.

    `seconds` limits wall-clock time, `cpu_seconds` processor time.
    """

    memory_bytes: int
    address_bytes: int
    cpu_seconds: int
    file_bytes: int
    seconds: float


def leave_with_parent(parent: int) -> None:
    """Die with process `parent`. Raises `SystemExit` if it has already ended."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    # other processes of the same user must not read this one's memory
    _prctl(_PR_SET_DUMPABLE, 0)
    if os.getppid() != parent:
        raise SystemExit(1)


def confine(limits: Limits) -> bool:
    """Set `limits`, and give up access to files; return whether the kernel supports the latter. Raises `OSError`."""
    os.nice(_NICENESS)
    # the signal at the soft limit says which limit was exceeded
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
