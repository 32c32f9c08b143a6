"""The environment variables with which MPI implementations describe a rank's world. Pure; every rank loads it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Mapping, Optional, Tuple

# Each tuple in this order: Open MPI, then MPICH and Intel MPI, then PRRTE with another PMIx library
_RANK = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK")
_SIZE = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE")
_LOCAL_RANK = ("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID")
_LOCAL_SIZE = ("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS")


# MPICH and Intel MPI; Open MPI
_SPAWNED = ("PMI_SPAWNED", "OMPI_PARENT_PORT")


class Position:
    """A rank's position in its world. Unknown sizes are 0."""

    def __init__(self, rank: int, size: int, local_rank: int, local_size: int) -> None:
        self.rank = rank
        self.size = size
        self.local_rank = local_rank
        self.local_size = local_size

    def build_variables(self) -> Dict[str, str]:
        """Return the variables of torch.distributed for this position."""
        return {
            "RANK": str(self.rank),
            "LOCAL_RANK": str(self.local_rank),
            "WORLD_SIZE": str(self.size),
            "LOCAL_WORLD_SIZE": str(self.local_size),
        }


def find_position(environment: Mapping[str, str], nodes: int, procs_per_node: int) -> Optional[Position]:
    """Return this process' position in its MPI world; None outside of one.

    Where a variable is unset, the job's number of nodes and ranks is used.
    """
    rank = _read_number(environment, _RANK)
    if rank is None:
        return None
    size = _read_number(environment, _SIZE)
    local_rank = _read_number(environment, _LOCAL_RANK)
    local_size = _read_number(environment, _LOCAL_SIZE)
    return Position(
        rank,
        nodes * procs_per_node if size is None else size,
        rank % procs_per_node if local_rank is None else local_rank,
        procs_per_node if local_size is None else local_size,
    )


def is_spawned(environment: Mapping[str, str]) -> bool:
    """Whether a rank has started this process with MPI_Comm_spawn. It is then in a separate world."""
    return any(environment.get(name, "0") != "0" for name in _SPAWNED)


def describe_mismatch(size: int, local_size: int, nodes: int, procs_per_node: int) -> Optional[str]:
    """Describe how a world's sizes differ from the job's; None if they don't."""
    if size == nodes * procs_per_node and local_size == procs_per_node:
        return None
    placement = "on one node" if local_size == size else f"with {local_size} on one of its nodes"
    return (
        f"mpirun gave a world of {size} {_inflect_rank(size)} {placement};"
        f" the job asks for {_format_nodes(nodes)} x {procs_per_node} {_inflect_rank(procs_per_node)}"
    )


def describe_placement_mismatch(rank: int, node: int, procs_per_node: int) -> Optional[str]:
    """Describe why the rank's node is wrong; None if it is the node that the job requires."""
    expected_node = rank // procs_per_node
    if expected_node == node:
        return None
    options = (
        f"--map-by slot or --map-by ppr:{procs_per_node}:node (Open MPI), -ppn {procs_per_node} (MPICH, Intel MPI)"
    )
    return (
        f"mpirun started rank {rank} on node {node} instead of node {expected_node}:"
        f" the job needs ranks numbered node by node: start mpirun with {options}"
    )


def split_master(text: str) -> Tuple[str, str]:
    """Split ADDRESS:PORT."""
    address, _, port = text.rpartition(":")
    return address, port


def _read_number(environment: Mapping[str, str], names: Tuple[str, ...]) -> Optional[int]:
    text = next((environment[name] for name in names if name in environment), "")
    return int(text) if text.isdigit() else None


def _inflect_rank(count: int) -> str:
    return "rank" if count == 1 else "ranks"


def _format_nodes(count: int) -> str:
    return "1 node" if count == 1 else f"{count} nodes"
