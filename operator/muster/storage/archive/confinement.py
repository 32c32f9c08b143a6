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

from muster.storage.archive.landlock import restrict_file_access

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 1, 4, 38

_MAX_OPEN_FILES = 64
_NICENESS = 10

_READABLE_PATHS = (
    *("/usr", "/lib", "/lib64", "/etc/ssl", "/etc/pki", "/etc/ca-certificates", "/etc/crypto-policies"),
    *("/etc/resolv.conf", "/etc/hosts", "/etc/host.conf", "/etc/nsswitch.conf", "/etc/gai.conf", "/etc/services"),
    *("/etc/ld.so.cache", "/etc/localtime", "/dev/null", "/dev/urandom"),
)
"""The paths that Python, OpenSSL and the DNS resolver read.

The list excludes the operator's configuration and tokens, and /proc, which shows other processes' environment.
"""


@dataclass(frozen=True)
class Limits:
    """`memory_bytes` limits the process's private memory, and `address_bytes` limits its address space.

    `file_bytes` limits each file that it writes, `cpu_seconds` its processor time, and `seconds` its wall-clock time.
    """

    memory_bytes: int
    address_bytes: int
    cpu_seconds: int
    file_bytes: int
    seconds: float


def exit_with_parent(parent: int) -> None:
    """Let the kernel kill this process when the process `parent` ends. Raises `SystemExit` if it has already ended."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    # Other processes of the same user must not read this process's memory.
    _prctl(_PR_SET_DUMPABLE, 0)
    if os.getppid() != parent:
        raise SystemExit(1)


def apply_limits(limits: Limits) -> bool:
    """Set `limits` and restrict the access to files; return whether the kernel supports the restriction."""
    os.nice(_NICENESS)
    # The kernel's signal at the soft limit identifies the exceeded limit.
    for resource_kind, limit, margin in (
        (resource.RLIMIT_DATA, limits.memory_bytes, 0),
        (resource.RLIMIT_AS, limits.address_bytes, 0),
        (resource.RLIMIT_CPU, limits.cpu_seconds, 1),
        (resource.RLIMIT_FSIZE, limits.file_bytes, 0),
        (resource.RLIMIT_NOFILE, _MAX_OPEN_FILES, 0),
        (resource.RLIMIT_CORE, 0, 0),
    ):
        _, hard = resource.getrlimit(resource_kind)
        hard_limit = limit + margin if hard == resource.RLIM_INFINITY else min(limit + margin, hard)
        resource.setrlimit(resource_kind, (min(limit, hard_limit), hard_limit))
    return restrict_file_access(_list_readable_paths())


def _list_readable_paths() -> list[Path]:
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
