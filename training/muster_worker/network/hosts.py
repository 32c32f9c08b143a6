"""Gives a node its own hosts file and host name, so that `algo-1` resolves without changes to the machine."""

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
    """Mount `path` on /etc/hosts and set the host name, for this process and its children only.

    Returns the error, or None. MPI uses shared memory between processes with the same host name, so nodes on one
    machine need different host names.

    The process must have a single thread. As root, it enters a private mount namespace. As another user, it also enters
    a user namespace in which it keeps its uid.
    """
    # Try it in a child first: if a later step failed, the agent itself would stay in a namespace without privileges.
    child = os.fork()
    if child == 0:
        os._exit(0 if _try_mount(path, name) is None else 1)
    _, status = os.waitpid(child, 0)
    if status != 0:
        return "this machine allows no private mounts"
    return _try_mount(path, name)


def mount_folder(folder: str, target: str) -> None:
    """Bind-mount `folder` on `target` for this process and its children, after `mount_hosts`. Raises `OSError`."""
    libc = ctypes.CDLL(None, use_errno=True)
    bind = ctypes.c_ulong(_MS_BIND)
    _check(libc.mount(os.fsencode(folder), os.fsencode(target), None, bind, None), f"mount {target}")


def _try_mount(path: str, name: str) -> Optional[str]:
    try:
        _mount(path, name)
    except OSError as error:
        return str(error)
    return None


def _mount(path: str, name: str) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    uid, gid = os.getuid(), os.getgid()
    is_root = os.geteuid() == 0
    if not is_root or libc.unshare(_CLONE_NEWNS | _CLONE_NEWUTS) != 0:
        _check(libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNS | _CLONE_NEWUTS), "unshare")
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{uid} {uid} 1")
        _write("/proc/self/gid_map", f"{gid} {gid} 1")
    # Slave mounts don't propagate to the machine, but the machine's mounts propagate to them. With private mounts,
    # folders that an automounter mounts on demand would fail with ELOOP.
    _check(libc.mount(None, b"/", None, ctypes.c_ulong(_MS_REC | _MS_SLAVE), None), "mount /")
    _check(libc.mount(os.fsencode(path), b"/etc/hosts", None, ctypes.c_ulong(_MS_BIND), None), "mount /etc/hosts")
    socket.sethostname(name)


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def _check(result: int, operation: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{operation}: {os.strerror(number)}")
