"""The table of launchers by their names in the plan. It imports a launcher's module on demand."""

from __future__ import annotations

import importlib

from muster_worker.launchers.base import Launcher

MODULES = {
    "torchrun": "muster_worker.launchers.torchrun",
    "mpi": "muster_worker.launchers.mpi",
    "direct": "muster_worker.launchers.direct",
    "perNode": "muster_worker.launchers.per_node",
}
"""Modules with a `LAUNCHER`. The keys are the fields of `spec.launcher`."""


def find_launcher(name: str) -> Launcher:
    """Return the launcher of this name. Raises `KeyError` for an unknown name."""
    launcher = importlib.import_module(MODULES[name]).LAUNCHER
    if not isinstance(launcher, Launcher):
        raise TypeError(f"{MODULES[name]}.LAUNCHER: expected a Launcher, found {type(launcher).__name__}")
    return launcher
