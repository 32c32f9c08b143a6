"""A node's own hosts file and host name, so that `algo-1` resolves and the machine's own names stay untouched."""

from __future__ import annotations

import ctypes
import os
import socket
from typing import Optional

# linux/sched.h and linux/mount.h
_CLONE_NEWNS = 0x00020000
_CLONE_NEWUTS = 0x04000000
_CLONE_NEWUSER = 0x10000000
_MS_BIND = 0x1000
_MS_REC = 0x4000
_MS_SLAVE = 1 << 19


def mount_hosts(path: str, name: str) -> Optional[str]:
    """Put `path` over /etc/hosts for this process and all it starts, and let this machine be called `name` for them.

    Returns why not, or None when it is done. MPI takes processes with one host name for processes of one node: shared
    memory of two nodes on this machine would be mixed up.

    Needs a process with one thread. Root uses a private mount namespace; anybody else a user namespace in which their
    own id stays what it is.
    """
    # tried in a child first: a step that fails half-way must not leave the agent in a namespace without rights
    child = os.fork()
    if child == 0:
        os._exit(0 if _try(path, name) is None else 1)
    _, status = os.waitpid(child, 0)
    if status != 0:
        return "this machine allows no private mounts"
    return _try(path, name)


def mount_folder(folder: str, place: str) -> None:
    """Let `place` be `folder` for this process and all it starts, after `mount_hosts`. Raises `OSError`."""
    libc = ctypes.CDLL(None, use_errno=True)
    bind = ctypes.c_ulong(_MS_BIND)
    _check(libc.mount(os.fsencode(folder), os.fsencode(place), None, bind, None), f"mount {place}")


def _try(path: str, name: str) -> Optional[str]:
    try:
        _mount(path, name)
    except OSError as error:
        return str(error)
    return None


def _mount(path: str, name: str) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    uid, gid = os.getuid(), os.getgid()
    as_root = os.geteuid() == 0
    if not as_root or libc.unshare(_CLONE_NEWNS | _CLONE_NEWUTS) != 0:
        _check(libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNS | _CLONE_NEWUTS), "unshare")
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{uid} {uid} 1")
        _write("/proc/self/gid_map", f"{gid} {gid} 1")
    # What is mounted here must not appear outside. What is mounted outside must appear here: with private mounts, home
    # and data folders that the machine's automounter brings on demand could not be entered (ELOOP).
    _check(libc.mount(None, b"/", None, ctypes.c_ulong(_MS_REC | _MS_SLAVE), None), "mount /")
    _check(libc.mount(os.fsencode(path), b"/etc/hosts", None, ctypes.c_ulong(_MS_BIND), None), "mount /etc/hosts")
    socket.sethostname(name)


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
