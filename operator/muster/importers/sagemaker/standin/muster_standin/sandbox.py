"""Prevent a launch script from opening connections and starting programs.

On Linux, a network namespace also isolates libraries that open connections without Python.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

from .errors import ForbiddenOperation

_NETWORK_EVENTS = frozenset(
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
_PROGRAM_EVENTS = frozenset(
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
"""Audit events of Python's standard library (see "Audit events table" in its documentation)."""

_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000
"""Flags of clone(2), from <linux/sched.h>."""


def install() -> None:
    """Install the sandbox for the rest of the process."""
    _enter_network_namespace()
    sys.addaudithook(_check_audit_event)


def _check_audit_event(event: str, arguments: tuple[object, ...]) -> None:
    if event in _NETWORK_EVENTS:
        raise ForbiddenOperation(
            f"`muster import` does not let a launch script use the network ({event}{_describe_arguments(arguments)})"
        )
    if event in _PROGRAM_EVENTS:
        raise ForbiddenOperation(
            f"`muster import` does not let a launch script start a program ({event}{_describe_arguments(arguments)}); "
            "pass the value that the script needs, for example with --env NAME=VALUE"
        )


def _describe_arguments(arguments: tuple[object, ...]) -> str:
    # The first argument may be a socket. Show only the address then.
    texts = [str(argument) for argument in arguments if isinstance(argument, (str, int, tuple, list))]
    return f": {texts[0][:100]}" if texts else ""


def _enter_network_namespace() -> None:
    """Enter a new network namespace, for libraries that open connections without Python.

    If the system does not allow a namespace, only the audit hook protects the process.
    """
    if sys.platform != "linux":
        return
    user, group = os.getuid(), os.getgid()
    unshare = ctypes.CDLL(None, use_errno=True).unshare
    if unshare(_CLONE_NEWNET) == 0 or unshare(_CLONE_NEWUSER | _CLONE_NEWNET) != 0:
        return
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        Path("/proc/self", name).write_text(text, encoding="ascii")
