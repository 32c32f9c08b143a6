"""The base class of launchers."""

from typing import Annotated, ClassVar

from pydantic import Field

from muster.api.spec.model import Model

LauncherArgument = Annotated[str, Field(min_length=1, max_length=1024)]


class Launcher(Model):
    """How the ranks start. The fields of a subclass are the launcher's options in the resource.

    To add a launcher, write a subclass, a field of `LauncherSpec`, and a module in `muster_worker/launchers`.
    """

    command_starts_ranks: ClassVar[bool] = False
    """Whether `command` runs once on each node and starts the node's ranks itself, as `accelerate launch` does."""

    accepts_mpirun: ClassVar[bool] = False
    """Whether `command` may itself be an mpirun."""

    runs_on_first_node: ClassVar[bool] = False
    """Whether a program on node 0 starts the ranks of all nodes."""

    has_launcher_program: ClassVar[bool] = False
    """Whether a program such as torchrun starts the ranks and prints the world size and the failed ranks."""

    supports_sagemaker: ClassVar[bool] = False
    """Whether muster's start script on SageMaker (`muster_worker/sagemaker/start_script.py`) supports this launcher."""

    def list_arguments(self) -> tuple[str, ...]:
        """Return the user's arguments for the launcher's program."""
        return ()
