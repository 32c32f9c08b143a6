"""`spec.launcher` as a type: the registry of launchers, with one field for each."""

from collections.abc import Mapping
from typing import get_args

from pydantic import Field

from muster.api.launchers.base import Launcher
from muster.api.launchers.direct import Direct
from muster.api.launchers.mpi import Mpi
from muster.api.launchers.per_node import PerNode
from muster.api.launchers.torchrun import Torchrun
from muster.api.spec.model import Model


class LauncherSpec(Model):
    """How the ranks start: exactly one of these fields is set."""

    torchrun: Torchrun | None = Field(default=None, description="Run torchrun around the command.")
    mpi: Mpi | None = Field(
        default=None,
        description="Run mpirun on node 0, with the command as its program. If the command is an mpirun, run it there.",
    )
    direct: Direct | None = Field(default=None, description="Start the ranks without a launcher.")
    per_node: PerNode | None = Field(
        default=None, description="Run the command once on each node. The command starts the ranks."
    )

    def list_configured_launchers(self) -> Mapping[str, Launcher]:
        """Return the launchers that are set, by field name. A valid resource has exactly one."""
        values = {str(field.alias): getattr(self, name) for name, field in type(self).model_fields.items()}
        return {name: value for name, value in values.items() if value is not None}

    @property
    def name(self) -> str:
        """The field name of the launcher, which the agents use too; "" if no launcher is set."""
        return next(iter(self.list_configured_launchers()), "")

    @property
    def chosen_launcher(self) -> Launcher:
        """The launcher that is set; an instance of the base class if none is set."""
        return next(iter(self.list_configured_launchers().values()), Launcher())


def list_launcher_types(spec: type[LauncherSpec] = LauncherSpec) -> Mapping[str, type[Launcher]]:
    """Return the type of each launcher, by its field name."""
    fields = spec.model_fields.values()
    return {str(field.alias): launcher_type for field in fields for launcher_type in get_args(field.annotation)[:1]}
