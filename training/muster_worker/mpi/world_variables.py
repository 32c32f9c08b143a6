"""What an MPI implementation tells a rank of its world, by environment. Pure; read at every rank's start."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, Mapping, Optional, Tuple

# Open MPI; MPICH and Intel MPI; PRRTE with another PMIx library
_RANK = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK")
_SIZE = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE")
_LOCAL_RANK = ("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID")
_LOCAL_SIZE = ("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS")


# MPICH and Intel MPI; Open MPI
_SPAWNED = ("PMI_SPAWNED", "OMPI_PARENT_PORT")


class Position:
    """A rank's place in its world; sizes are 0 where nothing is said of them."""

    def __init__(self, rank: int, size: int, local_rank: int, local_size: int) -> None:
        self.rank = rank
        self.size = size
        self.local_rank = local_rank
        self.local_size = local_size

    def variables(self) -> Dict[str, str]:
        """The same in the names that torch.distributed and most others read."""
        return {
            "RANK": str(self.rank),
            "LOCAL_RANK": str(self.local_rank),
            "WORLD_SIZE": str(self.size),
            "LOCAL_WORLD_SIZE": str(self.local_size),
        }


def position(environment: Mapping[str, str], nodes: int, procs_per_node: int) -> Optional[Position]:
    """Where this process is in a world of MPI; None where it is in none. What isn't said is as the job asks for it."""
    rank = _number(environment, _RANK)
    if rank is None:
        return None
    size = _number(environment, _SIZE)
    local_rank = _number(environment, _LOCAL_RANK)
    local_size = _number(environment, _LOCAL_SIZE)
    return Position(
        rank,
        nodes * procs_per_node if size is None else size,
        rank % procs_per_node if local_rank is None else local_rank,
        procs_per_node if local_size is None else local_size,
    )


def is_spawned(environment: Mapping[str, str]) -> bool:
    """Whether a rank has started this process, by MPI_Comm_spawn: then it is in a world of its own, not the job's."""
    return any(environment.get(name, "0") != "0" for name in _SPAWNED)


def mismatch(size: int, local_size: int, nodes: int, procs_per_node: int) -> Optional[str]:
    """Why a world isn't the one that the job asks for; None when it is."""
    if size == nodes * procs_per_node and local_size == procs_per_node:
        return None
    where = "on one node" if local_size == size else f"with {local_size} on one of its nodes"
    return (
        f"mpirun gave a world of {size} {_ranks(size)} {where};"
        f" the job asks for {_nodes(nodes)} x {procs_per_node} {_ranks(procs_per_node)}"
    )


def misplaced(rank: int, node: int, procs_per_node: int) -> Optional[str]:
    """Why a rank of the right world is on the wrong node of the job; None when it is on its own."""
    own = rank // procs_per_node
    if own == node:
        return None
    ways = f"--map-by slot or --map-by ppr:{procs_per_node}:node (Open MPI), -ppn {procs_per_node} (MPICH, Intel MPI)"
    return (
        f"mpirun put rank {rank} on node {node}, and the job has it on node {own}:"
        f" ranks are numbered node by node, as by {ways}"
    )


def read_master(text: str) -> Tuple[str, str]:
    """Address and port of ADDRESS:PORT."""
    address, _, port = text.rpartition(":")
    return address, port


def _number(environment: Mapping[str, str], names: Tuple[str, ...]) -> Optional[int]:
    text = next((environment[name] for name in names if name in environment), "")
    return int(text) if text.isdigit() else None


def _ranks(count: int) -> str:
    return "rank" if count == 1 else "ranks"


def _nodes(count: int) -> str:
    return "1 node" if count == 1 else f"{count} nodes"
