"""Whose `mpirun` it is, and the command lines that start a world with each. Pure."""

from __future__ import annotations

import os.path
from dataclasses import dataclass
from typing import Callable, Dict, Optional, Sequence, Tuple

from muster_worker.contract.schema import Mpi, Plan

PROGRAM = "mpirun"

_SIGNS = (
    ("Intel(R) MPI", Mpi.INTEL_MPI),
    ("Open MPI", Mpi.OPEN_MPI),
    ("Open RTE", Mpi.OPEN_MPI),  # its run-time layer's name, up to 4.0
    ("PRRTE", Mpi.OPEN_MPI),
    ("HYDRA", Mpi.MPICH),  # and what is made from it: MVAPICH, ParaStation
)
"""What `mpirun --version` says of itself. Intel's first: its mpirun is a Hydra, too."""


@dataclass(frozen=True)
class World:
    """What is asked of an mpirun: its nodes, in both kinds of host file, and the ranks on each of them."""

    nodes: int
    procs_per_node: int
    open_mpi_hosts: str
    hydra_hosts: str

    @property
    def size(self) -> int:
        return self.nodes * self.procs_per_node


def implementation(version: str) -> Optional[str]:
    """Whose mpirun says this of itself when it is asked for its version; None: nobody's that is known."""
    return next((name for sign, name in _SIGNS if sign in version), None)


def is_spoken_to_alike(kind: str, other: str) -> bool:
    """Whether both implementations take the same options for a world."""
    return _OPTIONS[kind] is _OPTIONS[other]


def is_own_mpirun(plan: Plan) -> bool:
    """Whether the job's command is an mpirun already, to be run as it stands."""
    return os.path.basename(plan.command[0]) in Mpi.RUNNERS


def launch_command(kind: str, world: World, arguments: Sequence[str], ranks: Sequence[str]) -> Tuple[str, ...]:
    """The command that starts `ranks`, a rank's command, on all nodes; `arguments` are the owner's, for mpirun."""
    return (PROGRAM, *_OPTIONS[kind](world), *arguments, *ranks)


def _open_mpi(world: World) -> Tuple[str, ...]:
    # ranks are numbered by node, as everybody else does it: 0 to 7 on the first one of 8
    mapping = f"ppr:{world.procs_per_node}:node"
    return ("--hostfile", world.open_mpi_hosts, "-np", str(world.size), "--map-by", mapping)


def _hydra(world: World) -> Tuple[str, ...]:
    # -genvnone: ranks see their own node's variables; Intel MPI has no variable for that
    return ("-f", world.hydra_hosts, "-n", str(world.size), "-ppn", str(world.procs_per_node), "-genvnone")


_OPTIONS: Dict[str, Callable[[World], Tuple[str, ...]]] = {
    Mpi.OPEN_MPI: _open_mpi,
    Mpi.INTEL_MPI: _hydra,
    Mpi.MPICH: _hydra,
}
