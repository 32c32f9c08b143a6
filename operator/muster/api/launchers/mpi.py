"""The type of `spec.launcher.mpi`."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from muster.api.launchers.base import Launcher, LauncherArgument


class Mpi(Launcher):
    """Run mpirun on node 0, which starts the ranks of all nodes through muster's agents, without ssh."""

    accepts_mpirun: ClassVar[bool] = True
    runs_on_first_node: ClassVar[bool] = True
    has_launcher_program: ClassVar[bool] = True
    supports_sagemaker: ClassVar[bool] = True

    implementation: Literal["Auto", "OpenMPI", "IntelMPI", "MPICH"] = Field(
        default="Auto", description="The MPI implementation. Auto: node 0 runs `mpirun --version` to detect it."
    )
    args: Annotated[tuple[LauncherArgument, ...], Field(max_length=64)] = Field(
        default=(),
        description="More arguments for mpirun. muster rejects options that it sets itself. If the command is itself "
        "an mpirun, write its options there.",
    )

    def list_arguments(self) -> tuple[str, ...]:
        return self.args
