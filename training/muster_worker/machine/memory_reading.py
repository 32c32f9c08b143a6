"""Detects whether processes may read each other's memory, which MPICH 5 requires between the ranks of a node.

Container runtimes may forbid the system call process_vm_readv(2) with seccomp, as containerd before 1.7 does. MPICH's
ranks then abort at the first large message.
"""

from __future__ import annotations

import ctypes
import os

CMA_VARIABLE = "MPIR_CVAR_CH4_CMA_ENABLE"
"""A variable of MPICH. With the value 0 MPICH copies through shared memory. Other implementations ignore it."""


class _IoVector(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


def is_forbidden() -> bool:
    """Try to read a byte of this process. seccomp would forbid that, too."""
    try:
        call = ctypes.CDLL(None, use_errno=True).process_vm_readv
    except (OSError, AttributeError):
        return False
    call.restype = ctypes.c_ssize_t
    source, target = ctypes.create_string_buffer(b"x", 1), ctypes.create_string_buffer(1)
    vectors = [_IoVector(ctypes.cast(buffer, ctypes.c_void_p), 1) for buffer in (target, source)]
    return bool(call(os.getpid(), ctypes.byref(vectors[0]), 1, ctypes.byref(vectors[1]), 1, 0) != 1)
