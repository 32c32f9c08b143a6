"""The type of `spec.launcher.torchrun`."""

from typing import Annotated, ClassVar

from pydantic import Field

from muster.api.launchers.base import Launcher, LauncherArgument


class Torchrun(Launcher):
    """Run torchrun with `command` once on each node, with a static rendezvous on node 0."""

    has_launcher_program: ClassVar[bool] = True
    supports_sagemaker: ClassVar[bool] = True

    args: Annotated[tuple[LauncherArgument, ...], Field(max_length=64)] = Field(
        default=(), description="More arguments for torchrun. muster rejects options that it sets itself."
    )

    def list_arguments(self) -> tuple[str, ...]:
        return self.args
