"""What an MPI job's nodes will start: mpirun on node 0, and its ranks on all of them. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from muster_worker.contract.schema import Mpi, Plan
from muster_worker.launchers import commands
from muster_worker.launchers.environment import Place
from muster_worker.mpi.environment import daemon_environment, launcher_environment, node_variables, world
from muster_worker.mpi.implementations import is_own_mpirun, launch_command
from muster_worker.mpi.world_variables import Position

_MASTER = ("ADDRESS_0", "29501")


def command(place: Place) -> tuple[str, ...]:
    """What node 0 starts, Open MPI's where the implementation is open; nothing on any other node."""
    plan = place.plan
    if place.node != 0:
        return ()
    if is_own_mpirun(plan):
        return commands.user_command(plan)
    rank = commands.mpi_rank(place, ":".join(_MASTER))
    return launch_command(_implementation(plan), world(place), plan.launcher_args, rank)


def environment(own: Mapping[str, str], place: Place) -> Mapping[str, str]:
    """What the node's first rank sees and, on node 0, mpirun."""
    ranks = {**own, **node_variables(own, place), **_of_rank(place)}
    if place.node != 0:
        return {**daemon_environment(own, place), **ranks}
    # As root, which most images are: that takes two variables more.
    return {**launcher_environment(own, place, is_root=True), **ranks}


def parts(plan: Plan, command: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """What mpirun's command is made of besides the owner's words, rank's wrapper and hyperparameters left out."""
    if not command or is_own_mpirun(plan):
        return ()
    result = [("mpirun", f"{plan.mpi}, here as {_implementation(plan)}" if plan.mpi == Mpi.AUTO else plan.mpi)]
    words = command[1 : command.index("-I") - 1 - len(plan.launcher_args)]
    index = 0
    while index < len(words):
        has_value = index + 1 < len(words) and not words[index + 1].startswith("-")
        result.append((words[index], words[index + 1] if has_value else "set"))
        index += 1 + has_value
    return tuple(result)


def _implementation(plan: Plan) -> str:
    return Mpi.OPEN_MPI if plan.mpi == Mpi.AUTO else plan.mpi


def _of_rank(place: Place) -> Mapping[str, str]:
    """What a rank's wrapper adds. Ranks of an mpirun of the owner's own have none."""
    plan = place.plan
    if is_own_mpirun(plan):
        return {}
    position = Position(place.node * plan.procs_per_node, plan.world_size, 0, plan.procs_per_node)
    return {**position.variables(), "MASTER_ADDR": _MASTER[0], "MASTER_PORT": _MASTER[1]}
