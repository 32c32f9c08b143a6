"""The launchers by their names in the plan. Each one's module is loaded when a job wants it."""

from __future__ import annotations

import importlib

from muster_worker.launchers.base import Launcher

MODULES = {
    "torchrun": "muster_worker.launchers.torchrun",
    "mpi": "muster_worker.launchers.mpi",
    "direct": "muster_worker.launchers.direct",
    "perNode": "muster_worker.launchers.per_node",
}
"""The modules, each with its `LAUNCHER`. The names are the fields of `spec.launcher`."""


def find_launcher(name: str) -> Launcher:
    """The launcher that a plan names. Raises `KeyError` for a name that is not in the table."""
    launcher = importlib.import_module(MODULES[name]).LAUNCHER
    if not isinstance(launcher, Launcher):
        raise TypeError(f"{MODULES[name]}.LAUNCHER: expected a Launcher, found {type(launcher).__name__}")
    return launcher
