"""Guards that keep a launch script from opening connections and starting programs.

On Linux, a network namespace isolates libraries that open connections without Python, too.
"""

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
    """Install the guards for the rest of the process."""
    _leave_network()
    sys.addaudithook(_refuse)


def _refuse(event: str, arguments: tuple[object, ...]) -> None:
    if event in _NETWORK:
        raise NotAllowed(f"`muster import` does not let a launch script use the network ({event}{_shown(arguments)})")
    if event in _PROGRAMS:
        raise NotAllowed(
            f"`muster import` does not let a launch script start a program ({event}{_shown(arguments)}); pass in the "
            "value that the script needs, such as with --env NAME=VALUE"
        )


def _shown(arguments: tuple[object, ...]) -> str:
    # the first argument may be a socket or a program; for connections the address is the useful part
    texts = [str(argument) for argument in arguments if isinstance(argument, (str, int, tuple, list))]
    return f": {texts[0][:100]}" if texts else ""


def _leave_network() -> None:
    """Enter a new network namespace, for libraries that open connections without Python.

    Some systems forbid it; then only the audit hook guards the process.
    """
    if sys.platform != "linux":
        return
    user, group = os.getuid(), os.getgid()
    unshare = ctypes.CDLL(None, use_errno=True).unshare
    if unshare(_CLONE_NEWNET) == 0 or unshare(_CLONE_NEWUSER | _CLONE_NEWNET) != 0:
        return
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        Path("/proc/self", name).write_text(text, encoding="ascii")
