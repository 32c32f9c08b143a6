"""The MPI implementations: how to detect them and their command lines. Pure."""

from __future__ import annotations

import os.path
from dataclasses import dataclass
from typing import Callable, Dict, Optional, Sequence, Tuple

from muster_worker.contract.mpi import Mpi
from muster_worker.contract.schema import Plan

PROGRAM = "mpirun"

_VERSION_TEXTS = (
    ("Intel(R) MPI", Mpi.INTEL_MPI),
    ("Open MPI", Mpi.OPEN_MPI),
    ("Open RTE", Mpi.OPEN_MPI),  # the name of Open MPI's run-time layer up to 4.0
    ("PRRTE", Mpi.OPEN_MPI),
    ("HYDRA", Mpi.MPICH),  # also MVAPICH and ParaStation
)
"""Text in the output of `mpirun --version`. Intel MPI comes first, because its mpirun also prints HYDRA."""


@dataclass(frozen=True)
class World:
    """A world to start: its size, and the host files in both formats."""

    nodes: int
    procs_per_node: int
    open_mpi_hosts: str
    hydra_hosts: str

    @property
    def size(self) -> int:
        return self.nodes * self.procs_per_node


def parse_implementation(version: str) -> Optional[str]:
    """Return the implementation that prints `version` for `mpirun --version`; None if it is unknown."""
    return next((name for text, name in _VERSION_TEXTS if text in version), None)


def has_same_options(implementation: str, other: str) -> bool:
    """Whether both implementations have the same options."""
    return _OPTIONS[implementation] is _OPTIONS[other]


def is_user_mpirun(plan: Plan) -> bool:
    """Whether the user's command is itself an mpirun."""
    return os.path.basename(plan.command[0]) in Mpi.RUNNERS


def build_launch_command(
    implementation: str, world: World, extra_options: Sequence[str], rank_command: Sequence[str]
) -> Tuple[str, ...]:
    """Return the mpirun command that starts `rank_command`, a rank's command, on all nodes."""
    return (PROGRAM, *_OPTIONS[implementation](world), *extra_options, *rank_command)


def _build_open_mpi_options(world: World) -> Tuple[str, ...]:
    # Number ranks node by node, like other launchers: 0 to 7 on the first node of 8.
    mapping = f"ppr:{world.procs_per_node}:node"
    return ("--hostfile", world.open_mpi_hosts, "-np", str(world.size), "--map-by", mapping)


def _build_hydra_options(world: World) -> Tuple[str, ...]:
    # -genvnone: ranks keep their own node's variables. Intel MPI has no variable for it.
    return ("-f", world.hydra_hosts, "-n", str(world.size), "-ppn", str(world.procs_per_node), "-genvnone")


_OPTIONS: Dict[str, Callable[[World], Tuple[str, ...]]] = {
    Mpi.OPEN_MPI: _build_open_mpi_options,
    Mpi.INTEL_MPI: _build_hydra_options,
    Mpi.MPICH: _build_hydra_options,
}
