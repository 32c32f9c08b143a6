"""What the nodes of an MPI job will start: mpirun on node 0, and the ranks on all nodes. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from muster_worker import launchers
from muster_worker.contract import Mpi, Plan
from muster_worker.environment import Place
from muster_worker.mpi_command import is_own_mpirun, launch_command
from muster_worker.mpi_environment import daemon_environment, launcher_environment, node_variables, world
from muster_worker.mpi_world import Position

_MASTER = ("ADDRESS_0", "29501")


def command(place: Place) -> tuple[str, ...]:
    """The command of node 0, for Open MPI if the implementation is Auto; nothing on other nodes."""
    plan = place.plan
    if place.node != 0:
        return ()
    if is_own_mpirun(plan):
        return launchers.user_command(plan)
    rank = launchers.mpi_rank(place, ":".join(_MASTER))
    return launch_command(_implementation(plan), world(place), plan.launcher_args, rank)


def environment(own: Mapping[str, str], place: Place) -> Mapping[str, str]:
    """The environment of the node's first rank and, on node 0, of mpirun."""
    ranks = {**own, **node_variables(own, place), **_of_rank(place)}
    if place.node != 0:
        return {**daemon_environment(own, place), **ranks}
    # As root, like in most images: that needs two more variables.
    return {**launcher_environment(own, place, is_root=True), **ranks}


def parts(plan: Plan, command: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """The parts of mpirun's command that muster adds, without the rank's wrapper and hyperparameters."""
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
    """The variables that a rank's wrapper adds; an mpirun in the user's command starts ranks without wrappers."""
    plan = place.plan
    if is_own_mpirun(plan):
        return {}
    position = Position(place.node * plan.procs_per_node, plan.world_size, 0, plan.procs_per_node)
    return {**position.variables(), "MASTER_ADDR": _MASTER[0], "MASTER_PORT": _MASTER[1]}
