"""`spec.launcher` as types: what starts the ranks."""

from typing import Annotated, Literal

from pydantic import Field

from muster.api.model import Model

LauncherArgument = Annotated[str, Field(min_length=1, max_length=1024)]


class Torchrun(Model):
    """Run torchrun around `command`, once a node, with a static rendezvous on node 0."""

    args: Annotated[tuple[LauncherArgument, ...], Field(max_length=64)] = Field(
        default=(), description="More arguments for torchrun. Options that muster sets itself are refused."
    )


class Mpi(Model):
    """Run mpirun on node 0; it starts the ranks of all nodes through muster's agents, without ssh."""

    implementation: Literal["Auto", "OpenMPI", "IntelMPI", "MPICH"] = Field(
        default="Auto", description="The MPI implementation; Auto: node 0 runs `mpirun --version` to find out."
    )
    args: Annotated[tuple[LauncherArgument, ...], Field(max_length=64)] = Field(
        default=(),
        description="More arguments for mpirun. Options that muster sets itself are refused. If the command is itself "
        "an mpirun, write its options there.",
    )


class Direct(Model):
    """The agent starts the node's ranks itself, with RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT set."""


class PerNode(Model):
    """`command` runs once a node and starts its ranks itself, from PET_*, MASTER_* or SM_*."""


class LauncherSpec(Model):
    """How the ranks start: exactly one of these fields is set."""

    torchrun: Torchrun | None = Field(default=None, description="Run torchrun around the command.")
    mpi: Mpi | None = Field(
        default=None,
        description="Run mpirun on node 0: around the command, or the command itself when that is an mpirun.",
    )
    direct: Direct | None = Field(default=None, description="Start the ranks without a launcher.")
    per_node: PerNode | None = Field(default=None, description="Run the command once a node; it starts the ranks.")
