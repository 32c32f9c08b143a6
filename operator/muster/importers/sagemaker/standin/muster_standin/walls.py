"""Nothing leaves this process: Python opens no connection and starts no program; where Linux lets it, no network."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

from .refused import NotAllowed

_NETWORK = frozenset(
    {
        "socket.bind",
        "socket.connect",
        "socket.getaddrinfo",
        "socket.gethostbyaddr",
        "socket.gethostbyname",
        "socket.sendmsg",
        "socket.sendto",
    }
)
_PROGRAMS = frozenset(
    {
        "os.exec",
        "os.posix_spawn",
        "os.spawn",
        "os.startfile",
        "os.system",
        "pty.spawn",
        "subprocess.Popen",
    }
)
"""Audit events of Python's standard library ("Audit events table" in its documentation)."""

_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000
"""From <linux/sched.h>."""


def close() -> None:
    """Shut this process off, for as long as it lives."""
    _leave_network()
    sys.addaudithook(_refuse)


def _refuse(event: str, arguments: tuple[object, ...]) -> None:
    if event in _NETWORK:
        raise NotAllowed(f"muster import lets a launch script reach no network ({event}{_shown(arguments)})")
    if event in _PROGRAMS:
        raise NotAllowed(
            f"muster import lets a launch script start no program ({event}{_shown(arguments)}); give it the value that "
            "it wants from there, such as with --env NAME=VALUE"
        )


def _shown(arguments: tuple[object, ...]) -> str:
    # the first is a socket object, or a program; of connections the address says more
    texts = [str(argument) for argument in arguments if isinstance(argument, (str, int, tuple, list))]
    return f": {texts[0][:100]}" if texts else ""


def _leave_network() -> None:
    """For libraries that open connections without Python. Not everywhere allowed: then Python's own wall has to do."""
    if sys.platform != "linux":
        return
    user, group = os.getuid(), os.getgid()
    unshare = ctypes.CDLL(None, use_errno=True).unshare
    if unshare(_CLONE_NEWNET) == 0 or unshare(_CLONE_NEWUSER | _CLONE_NEWNET) != 0:
        return
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        Path("/proc/self", name).write_text(text, encoding="ascii")
