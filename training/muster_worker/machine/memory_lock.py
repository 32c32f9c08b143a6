"""How much memory the node's processes may pin: what EFA and InfiniBand send from, and receive into, is pinned.

ibv_reg_mr(3) counts it against RLIMIT_MEMLOCK (getrlimit(2)). To raise the soft limit up to the hard one takes no
right; ranks inherit it. Who may not pin enough is told `Cannot allocate memory` by the library, and nothing more.
"""

from __future__ import annotations

import resource
from typing import Optional

UNLIMITED = resource.RLIM_INFINITY

_MIB = 1024 * 1024


def raise_limit() -> int:
    """Raise the soft limit to the hard one, for this process and all that it starts; what it is then, in bytes."""
    _, hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    try:
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (hard, hard))
    except (OSError, ValueError):
        pass  # a sandbox that forbids it: then it stays as it is, and that is told
    return resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]


def objection(limit: int, *, has_verbs: bool) -> Optional[str]:
    """What is wrong with a limit of so many bytes on a node that has such devices, or not; None when nothing is."""
    if not has_verbs or limit == UNLIMITED:
        return None
    return f"only {limit / _MIB:.3g} MiB may be pinned for EFA: give the container runtime LimitMEMLOCK=infinity"
