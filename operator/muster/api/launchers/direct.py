"""`spec.launcher.direct`."""

from typing import ClassVar

from muster.api.launchers.base import Launcher


class Direct(Launcher):
    """The agent starts the node's ranks itself, with RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT set."""

    is_for_sagemaker: ClassVar[bool] = True
