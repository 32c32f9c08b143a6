"""Restrict the resources and the file access of a process before it parses untrusted data."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from muster.storage.archive.landlock import restrict_to_reading

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 1, 4, 38

_OPEN_FILES = 64
_NICENESS = 10

_READABLE_PATHS = (
    *("/usr", "/lib", "/lib64", "/etc/ssl", "/etc/pki", "/etc/ca-certificates", "/etc/crypto-policies"),
    *("/etc/resolv.conf", "/etc/hosts", "/etc/host.conf", "/etc/nsswitch.conf", "/etc/gai.conf", "/etc/services"),
    *("/etc/ld.so.cache", "/etc/localtime", "/dev/null", "/dev/urandom"),
)
"""The paths that Python, OpenSSL and the resolver read.

They don't include the operator's configuration in /etc/muster, its tokens, and /proc with other processes' environment.
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


def exit_with_parent(parent: int) -> None:
    """Let the kernel kill this process when `parent` ends. Raises `SystemExit` if it has already ended."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    # other processes of the same user must not read this one's memory
    _prctl(_PR_SET_DUMPABLE, 0)
    if os.getppid() != parent:
        raise SystemExit(1)


def confine(limits: Limits) -> bool:
    """Set `limits` and restrict file access; return whether the kernel supports the restriction. Raises `OSError`."""
    os.nice(_NICENESS)
    # the signal at the soft limit identifies the exceeded limit
    for resource_kind, limit, margin in (
        (resource.RLIMIT_DATA, limits.memory_bytes, 0),
        (resource.RLIMIT_AS, limits.address_bytes, 0),
        (resource.RLIMIT_CPU, limits.cpu_seconds, 1),
        (resource.RLIMIT_FSIZE, limits.file_bytes, 0),
        (resource.RLIMIT_NOFILE, _OPEN_FILES, 0),
        (resource.RLIMIT_CORE, 0, 0),
    ):
        _, hard = resource.getrlimit(resource_kind)
        hard_limit = limit + margin if hard == resource.RLIM_INFINITY else min(limit + margin, hard)
        resource.setrlimit(resource_kind, (min(limit, hard_limit), hard_limit))
    return restrict_to_reading(_readable_paths())


def _readable_paths() -> list[Path]:
    python_paths = (
        os.environ.get("SSL_CERT_FILE"),
        os.environ.get("SSL_CERT_DIR"),
        sys.prefix,
        sys.base_prefix,
        *sys.path,
    )
    return [Path(path) for path in (*_READABLE_PATHS, *python_paths) if path]


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
