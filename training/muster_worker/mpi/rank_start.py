"""Finds the node and the world of a rank that mpirun has started, before the rank's command starts."""

from __future__ import annotations

from muster_worker.mpi import node_file, world_variables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Mapping, Optional, Sequence

MASTER = "--master="  # rendezvous of torch.distributed, ADDRESS:PORT


def is_rank(environment: Mapping[str, str]) -> bool:
    """Whether this process is a rank of the MPI job's world, under any mpirun."""
    is_started_by_muster = (
        node_file.NODE_FILE_VARIABLE in environment or node_file.FIRST_NODE_FILE_VARIABLE in environment
    )
    spawned = world_variables.is_spawned(environment)
    return is_started_by_muster and not spawned and world_variables.find_position(environment, 1, 1) is not None


def add_world_variables(environment: Mapping[str, str], options: Sequence[str]) -> Dict[str, str]:
    """Add the node's variables, and the rank and world size in torch.distributed's names, to a rank's environment.

    Raises `OSError`, `KeyError` or `ValueError` if they are unknown.
    """
    result = node_file.merge(environment, node_file.read(environment))
    position = world_variables.find_position(
        result, int(result[node_file.NODES_VARIABLE]), int(result[node_file.PROCS_PER_NODE_VARIABLE])
    )
    if position is None:
        raise ValueError("mpirun set none of OMPI_COMM_WORLD_RANK, PMI_RANK and PMIX_RANK")
    for name, value in position.build_variables().items():
        result.setdefault(name, value)
    for option in options:
        if option.startswith(MASTER):
            address, port = world_variables.split_master(option[len(MASTER) :])
            result.setdefault("MASTER_ADDR", address)
            result.setdefault("MASTER_PORT", port)
    return result


def describe_mismatch(environment: Mapping[str, str]) -> Optional[str]:
    """Return the reason why the rank's world is not the job's, so that its command must not run; None if it is.

    `environment` is from `add_world_variables`.
    """
    nodes, procs = int(environment[node_file.NODES_VARIABLE]), int(environment[node_file.PROCS_PER_NODE_VARIABLE])
    position = world_variables.find_position(environment, nodes, procs)
    if position is None:
        return None
    world_mismatch = world_variables.describe_mismatch(position.size, position.local_size, nodes, procs)
    return world_mismatch or world_variables.describe_placement_mismatch(
        position.rank, int(environment[node_file.NODE_VARIABLE]), procs
    )
