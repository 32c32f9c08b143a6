"""`spec.launcher` as types: what starts the ranks."""

from typing import Annotated, Literal

from pydantic import Field

from muster.api.model import Model

LauncherArgument = Annotated[str, Field(min_length=1, max_length=1024)]


class Torchrun(Model):
    """torchrun around `command`, one agent a node, static rendezvous on node 0."""

    args: Annotated[tuple[LauncherArgument, ...], Field(max_length=64)] = Field(
        default=(), description="More arguments for torchrun. Those that muster sets itself are refused."
    )


class Mpi(Model):
    """mpirun on node 0, which starts the ranks of all nodes through muster's agents: no ssh."""

    implementation: Literal["Auto", "OpenMPI", "IntelMPI", "MPICH"] = Field(
        default="Auto", description="Whose mpirun it is; Auto: it is asked once, on node 0."
    )
    args: Annotated[tuple[LauncherArgument, ...], Field(max_length=64)] = Field(
        default=(),
        description="More arguments for mpirun. Those that muster sets itself are refused. None with a command that is "
        "an mpirun: its own stand there.",
    )


class Direct(Model):
    """The agent starts the node's ranks itself, with RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT set."""


class PerNode(Model):
    """`command` runs once a node and starts its ranks itself, from PET_*, MASTER_* or SM_*."""


class LauncherSpec(Model):
    """How the ranks are started: exactly one of its fields."""

    torchrun: Torchrun | None = Field(default=None, description="Run torchrun around the command.")
    mpi: Mpi | None = Field(
        default=None,
        description="Run mpirun on node 0: around the command, or the command itself when that is an mpirun.",
    )
    direct: Direct | None = Field(default=None, description="Start the ranks without a launcher of their own.")
    per_node: PerNode | None = Field(default=None, description="Run the command once a node; it starts the ranks.")
