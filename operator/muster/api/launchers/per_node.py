"""The type of `spec.launcher.perNode`."""

from typing import ClassVar

from muster.api.launchers.base import Launcher


class PerNode(Launcher):
    """Run `command` once on each node. The command reads PET_*, MASTER_* or SM_* and starts the node's ranks."""

    command_starts_ranks: ClassVar[bool] = True
    accepts_mpirun: ClassVar[bool] = True
    supports_sagemaker: ClassVar[bool] = True
