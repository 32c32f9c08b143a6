"""Raises the limit of locked memory: EFA and InfiniBand use pinned memory for their buffers.

ibv_reg_mr(3) counts pinned memory against RLIMIT_MEMLOCK (getrlimit(2)). Raising the soft limit to the hard limit needs
no privilege, and ranks inherit it. If the limit is too low, libraries only report `Cannot allocate memory`.
"""

from __future__ import annotations

import resource
from typing import Optional

UNLIMITED = resource.RLIM_INFINITY

_MIB = 1024 * 1024


def raise_limit() -> int:
    """Raise the soft limit to the hard limit, for this process and its children. Returns the soft limit in bytes."""
    _, hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    try:
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (hard, hard))
    except (OSError, ValueError):
        pass  # a sandbox forbids it: the caller reports the current limit
    return resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]


def find_warning(limit: int, *, has_verbs: bool) -> Optional[str]:
    """Return a warning if the node has EFA or InfiniBand devices and a limit; None otherwise."""
    if not has_verbs or limit == UNLIMITED:
        return None
    return f"only {limit / _MIB:.3g} MiB may be pinned for EFA: set LimitMEMLOCK=infinity for the container runtime"
