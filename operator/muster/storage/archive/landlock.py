"""Restrict the file access of a process with Linux's Landlock, which requires no privileges.

See "Landlock: unprivileged access control" in the kernel's documentation, and include/uapi/linux/landlock.h.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterable
from pathlib import Path

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
"""The numbers of the system calls, which are the same on all architectures except alpha."""

_GET_VERSION = 1
_PATH_BENEATH = 1

_READ_FILE, _READ_DIR = 1 << 2, 1 << 3
_FILES_BY_VERSION = ((1, 1 << 13), (2, 1 << 14), (3, 1 << 15), (5, 1 << 16))
"""The versions of Landlock that added file rights, each with the bit after its last right."""

_BIND_TCP = 1
_NETWORK_VERSION = 4
_ABSTRACT_SOCKETS_AND_SIGNALS = 3
_SCOPE_VERSION = 6


class _Ruleset(ctypes.Structure):
    _fields_ = (
        ("handled_access_fs", ctypes.c_uint64),
        ("handled_access_net", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    )


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


def restrict_file_access(paths: Iterable[Path]) -> bool:
    """Allow this thread and its children to open only `paths` and files below them, and only for reading.

    Also forbid them to listen, to signal other processes, and to start programs. Open files remain open. Return False
    if the kernel has no Landlock. Raises `OSError`.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    version = libc.syscall(_CREATE_RULESET, None, 0, _GET_VERSION) if sys.platform == "linux" else -1
    if version < 1:
        return False
    handled_file_rights = max(rights_end for added_in, rights_end in _FILES_BY_VERSION if added_in <= version) - 1
    handled_network_rights = _BIND_TCP if version >= _NETWORK_VERSION else 0
    scoped = _ABSTRACT_SOCKETS_AND_SIGNALS if version >= _SCOPE_VERSION else 0
    size = 8 * (1 + (version >= _NETWORK_VERSION) + (version >= _SCOPE_VERSION))
    rules = _check_result(
        libc.syscall(
            _CREATE_RULESET, ctypes.byref(_Ruleset(handled_file_rights, handled_network_rights, scoped)), size, 0
        )
    )
    try:
        for path in paths:
            _allow(libc, rules, path)
        _check_result(libc.syscall(_RESTRICT_SELF, rules, 0))
    finally:
        os.close(rules)
    return True


def _allow(libc: ctypes.CDLL, rules: int, path: Path) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        rights = _READ_FILE | _READ_DIR if path.is_dir() else _READ_FILE
        rule = _PathBeneath(rights, descriptor)
        _check_result(libc.syscall(_ADD_RULE, rules, _PATH_BENEATH, ctypes.byref(rule), 0))
    finally:
        os.close(descriptor)


def _check_result(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
