"""`spec.launcher.perNode`."""

from typing import ClassVar

from muster.api.launchers.base import Launcher


class PerNode(Launcher):
    """`command` runs once a node and starts its ranks itself, from PET_*, MASTER_* or SM_*."""

    command_starts_ranks: ClassVar[bool] = True
    takes_mpirun: ClassVar[bool] = True
    is_for_sagemaker: ClassVar[bool] = True
