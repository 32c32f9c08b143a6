"""Whether a process here may read another one's memory, as MPICH 5 takes for granted between the ranks of a node.

Container runtimes may forbid the system call process_vm_readv(2) by seccomp, as containerd before 1.7 does. MPICH
notices it with the first large message, and its ranks abort.
"""

from __future__ import annotations

import ctypes
import os

VARIABLE = "MPIR_CVAR_CH4_CMA_ENABLE"
"""MPICH's variable: 0 makes it copy through shared memory instead. Other MPIs have other names for it."""


class _Piece(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


def is_forbidden() -> bool:
    """Ask the kernel, by reading a byte of this very process: what refuses that refuses everybody."""
    try:
        call = ctypes.CDLL(None, use_errno=True).process_vm_readv
    except (OSError, AttributeError):
        return False
    call.restype = ctypes.c_ssize_t
    source, target = ctypes.create_string_buffer(b"x", 1), ctypes.create_string_buffer(1)
    pieces = [_Piece(ctypes.cast(buffer, ctypes.c_void_p), 1) for buffer in (target, source)]
    return bool(call(os.getpid(), ctypes.byref(pieces[0]), 1, ctypes.byref(pieces[1]), 1, 0) != 1)
