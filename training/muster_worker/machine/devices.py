"""The node's hardware: CPU cores and GPUs."""

from __future__ import annotations

import os
import re


def count_cpus() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


def count_gpus() -> int:
    """Return the number of NVIDIA GPUs that this process may use, by CUDA_VISIBLE_DEVICES if it is set."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return len([part for part in visible.split(",") if part.strip() and part.strip() != "-1"])
    try:
        names = os.listdir("/dev")
    except OSError:
        return 0
    return sum(1 for name in names if re.fullmatch(r"nvidia\d+", name))
