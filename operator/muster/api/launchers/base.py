"""The base class of launchers: a launcher's options and properties."""

from typing import Annotated, ClassVar

from pydantic import Field

from muster.api.spec.model import Model

LauncherArgument = Annotated[str, Field(min_length=1, max_length=1024)]


class Launcher(Model):
    """A way to start ranks. Its fields are its options in the resource.

    To add a launcher, write a subclass, a field of `LauncherSpec`, and the agent's part in `muster_worker/launchers`.
    """

    command_starts_ranks: ClassVar[bool] = False
    """Whether `command` runs once on each node and starts the ranks itself; it may then be a launcher."""

    accepts_mpirun: ClassVar[bool] = False
    """Whether `command` may be an mpirun."""

    runs_on_first_node: ClassVar[bool] = False
    """Whether a program on node 0 starts the ranks of all nodes, through the other nodes' agents."""

    has_program: ClassVar[bool] = False
    """Whether the ranks are started by a program whose output has the world size and the failed rank."""

    supports_sagemaker: ClassVar[bool] = False
    """Whether muster's start script on SageMaker (`muster_worker/sagemaker/start_script.py`) supports it."""

    def arguments(self) -> tuple[str, ...]:
        """The job's own arguments for the launcher's program."""
        return ()
