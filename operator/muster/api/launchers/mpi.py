"""`spec.launcher.mpi`."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from muster.api.launchers.base import Launcher, LauncherArgument


class Mpi(Launcher):
    """mpirun on node 0, which starts the ranks of all nodes through muster's agents: no ssh."""

    takes_mpirun: ClassVar[bool] = True
    runs_on_first_node: ClassVar[bool] = True
    has_program: ClassVar[bool] = True
    is_for_sagemaker: ClassVar[bool] = True

    implementation: Literal["Auto", "OpenMPI", "IntelMPI", "MPICH"] = Field(
        default="Auto", description="Whose mpirun it is; Auto: it is asked once, on node 0."
    )
    args: Annotated[tuple[LauncherArgument, ...], Field(max_length=64)] = Field(
        default=(),
        description="More arguments for mpirun. Those that muster sets itself are refused. None with a command that is "
        "an mpirun: its own stand there.",
    )

    def arguments(self) -> tuple[str, ...]:
        return self.args
