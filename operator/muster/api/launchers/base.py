"""What a field of `spec.launcher` is: its options, and what the rest of muster asks about it."""

from typing import Annotated, ClassVar

from pydantic import Field

from muster.api.spec.model import Model

LauncherArgument = Annotated[str, Field(min_length=1, max_length=1024)]


class Launcher(Model):
    """One way to start ranks. A new one is a subclass in a module of its own, and a field of `LauncherSpec`.

    Its fields are its options in the resource. The agent has its other half: `muster_worker/launchers`.
    """

    command_starts_ranks: ClassVar[bool] = False
    """Whether `command` runs once a node and starts the ranks itself, and so may be a launcher."""

    takes_mpirun: ClassVar[bool] = False
    """Whether `command` may be an mpirun."""

    runs_on_first_node: ClassVar[bool] = False
    """Whether one program, on node 0, starts the ranks of all nodes through the other nodes' agents."""

    has_program: ClassVar[bool] = False
    """Whether a program starts the ranks whose own lines tell the size of the world, and which rank failed."""

    is_for_sagemaker: ClassVar[bool] = False
    """Whether muster's start script on SageMaker knows it: `muster_worker/sagemaker/start_script.py`."""

    def arguments(self) -> tuple[str, ...]:
        """The job's own arguments for the launcher's program."""
        return ()
