"""The type of `spec.launcher.direct`."""

from typing import ClassVar

from muster.api.launchers.base import Launcher


class Direct(Launcher):
    """The agent starts the ranks without a launcher and sets RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT."""

    supports_sagemaker: ClassVar[bool] = True
