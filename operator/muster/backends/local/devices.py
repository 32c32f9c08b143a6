"""Find this machine's GPUs, and divide them among the nodes of a run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from muster.api.spec.job import Job
from muster.core.world import choose_procs_per_node

VISIBLE_DEVICES = "CUDA_VISIBLE_DEVICES"


def find_machine_gpus(environment: Mapping[str, str], devices: Path) -> tuple[str, ...]:
    """Return the GPUs that `environment` makes visible, as CUDA names them. `devices` is the folder of device files."""
    visible = environment.get(VISIBLE_DEVICES)
    if visible is not None:
        return tuple(part.strip() for part in visible.split(",") if part.strip() not in {"", "-1"})
    try:
        count = sum(1 for entry in devices.iterdir() if re.fullmatch(r"nvidia\d+", entry.name))
    except OSError:
        return ()
    return tuple(str(index) for index in range(count))


def resolve_local_procs_per_node(job: Job, gpus: int) -> Job:
    """Resolve `procsPerNode: Auto`: the machine's GPUs divided by the nodes, at least 1."""
    procs = choose_procs_per_node(job, gpus // job.spec.max_nodes)
    return job.model_copy(update={"spec": job.spec.model_copy(update={"procs_per_node": procs})})


def split_gpus(gpus: tuple[str, ...], nodes: int) -> tuple[tuple[str, ...], ...]:
    """Divide the GPUs equally, in order. With fewer GPUs than nodes, nodes share them in turn."""
    if not gpus:
        return ((),) * nodes
    share = len(gpus) // nodes
    if share == 0:
        return tuple((gpus[node % len(gpus)],) for node in range(nodes))
    return tuple(gpus[node * share : (node + 1) * share] for node in range(nodes))
