"""A rank that mpirun's daemon has started: finds its node and its world before its command starts."""

from __future__ import annotations

from muster_worker.mpi import node_file, world_variables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Mapping, Optional, Sequence

MASTER = "--master="  # rendezvous of torch.distributed, ADDRESS:PORT


def is_rank(environment: Mapping[str, str]) -> bool:
    """Whether this process is a rank of the MPI job's world, under any mpirun."""
    is_started_by_muster = node_file.HERE in environment or node_file.FIRST in environment
    spawned = world_variables.is_spawned(environment)
    return is_started_by_muster and not spawned and world_variables.position(environment, 1, 1) is not None


def add_world_variables(environment: Mapping[str, str], mode: Sequence[str]) -> Dict[str, str]:
    """The rank's environment: its node's variables, and its rank and world size in torch.distributed's names.

    Raises `OSError`, `KeyError` or `ValueError` if they are unknown.
    """
    result = node_file.merged(environment, node_file.read(environment))
    position = world_variables.position(result, int(result[node_file.NODES]), int(result[node_file.PROCS_PER_NODE]))
    if position is None:
        raise ValueError("mpirun set none of OMPI_COMM_WORLD_RANK, PMI_RANK and PMIX_RANK")
    for name, value in position.variables().items():
        result.setdefault(name, value)
    for option in mode:
        if option.startswith(MASTER):
            address, port = world_variables.read_master(option[len(MASTER) :])
            result.setdefault("MASTER_ADDR", address)
            result.setdefault("MASTER_PORT", port)
    return result


def mismatch(environment: Mapping[str, str]) -> Optional[str]:
    """Why the rank's command must not run: its world isn't the job's. `environment` is from `add_world_variables`."""
    nodes, procs = int(environment[node_file.NODES]), int(environment[node_file.PROCS_PER_NODE])
    position = world_variables.position(environment, nodes, procs)
    if position is None:
        return None
    world_mismatch = world_variables.mismatch(position.size, position.local_size, nodes, procs)
    return world_mismatch or world_variables.placement_mismatch(position.rank, int(environment[node_file.NODE]), procs)
